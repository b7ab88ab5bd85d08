package sdk

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// replying answers every line that it reads with the lines of the script.
func replying(script string) Command {
	return shell(`while read -r line; do ` + script + `; done`)
}

func TestRPCFindsTheReplyToItsOwnCall(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rpc, err := StartRPC(t.Context(), replying(
		`echo '{"id":999,"result":{"n":1}}'; echo 'not json'; echo '{"id":1,"method":"ask"}'; echo '{"method":"told"}'; echo '{"id":1,"result":{"n":2}}'`),
		time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer rpc.Close()
	var result struct{ N int }
	if err := rpc.Call("read", nil, &result); err != nil || result.N != 2 {
		t.Fatalf("Call = %v, %+v", err, result)
	}
}

func TestRPCErrorTellsNoTextFromOutside(t *testing.T) {
	rpc, err := StartRPC(t.Context(), replying(`echo '{"id":1,"error":{"code":-32603,"message":"GET failed: 401 CANARY"}}'`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer rpc.Close()
	err = rpc.Call("read", nil, nil)
	var refused *RPCError
	if !errors.As(err, &refused) || refused.Code != -32603 || strings.Contains(err.Error(), "CANARY") {
		t.Fatalf("Call = %v", err)
	}
	if got := refused.Find(regexp.MustCompile(`failed: (\d{3}) `)); got != "401" {
		t.Errorf("Find = %q, want 401", got)
	}
}

func TestRPCIsBounded(t *testing.T) {
	cases := map[string]struct {
		script string
		want   error
	}{
		"a line that never ends":      {`head -c 3000000 /dev/zero | tr '\0' x`, ErrRPCTooMuch},
		"notifications without end":   {`yes '{"method":"account/updated","params":{}}'`, ErrRPCTooMuch},
		"a client that ends silently": {`exit 0`, ErrRPCClosed},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rpc, err := StartRPC(t.Context(), replying(c.script), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer rpc.Close()
			if err := rpc.Call("read", nil, nil); !errors.Is(err, c.want) {
				t.Errorf("Call = %v, want %v", err, c.want)
			}
		})
	}
}

func TestRPCEndsAClientThatDoesNotLeave(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	rpc, err := StartRPC(t.Context(), shell(`trap '' TERM; sleep 60 & sleep 60`), 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := rpc.Call("read", nil, nil); err == nil {
		t.Error("a call without a reply succeeded")
	}
	rpc.Close()
}
