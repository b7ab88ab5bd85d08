package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/noria-dev/noria/sdk"
)

func ExampleParsePercent() {
	for _, text := range []string{"42.5", "104", "250", "NaN", "1e1"} {
		if used := sdk.ParsePercent(text); used != nil {
			fmt.Println(text, "is", *used)
		} else {
			fmt.Println(text, "is unknown")
		}
	}
	// Output:
	// 42.5 is 42.5
	// 104 is 100
	// 250 is unknown
	// NaN is unknown
	// 1e1 is unknown
}

func ExampleParseFraction() {
	fmt.Println(*sdk.ParseFraction("0.28"))
	// Output: 28
}

func ExampleResetWithin() {
	observed := time.Date(2026, time.November, 30, 0, 0, 0, 0, time.UTC)
	soon := sdk.ResetWithin(observed.Add(3*time.Hour), observed, 5*time.Hour)
	late := sdk.ResetWithin(observed.Add(30*time.Hour), observed, 5*time.Hour)
	fmt.Println(soon.Format(time.Kitchen), late.IsZero())
	// Output: 3:00AM true
}

func ExampleWindowOf() {
	for _, minutes := range []time.Duration{300, 10080} {
		window := sdk.WindowOf(minutes * time.Minute)
		fmt.Println(window.ID, window.Kind)
	}
	// Output:
	// 5h WINDOW_KIND_ROLLING
	// weekly WINDOW_KIND_WEEKLY
}

func ExampleOneValue() {
	header := http.Header{}
	header.Add("X-Used", "10")
	header.Add("X-Used", "90")
	fmt.Printf("%q\n", sdk.OneValue(header, "x-used"))
	// Output: ""
}

func ExampleRefuse() {
	lease := func() (sdk.Lease, error) {
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalSignedOut, "Run noria connect acme/work.")
	}
	_, err := lease()
	var refused *sdk.RefusalError
	fmt.Println(errors.As(err, &refused), refused.Code, refused.Reason)
	// Output: true REFUSAL_CODE_SIGNED_OUT Run noria connect acme/work.
}

func ExampleSecret() {
	token := sdk.Secret("t-1234")
	fmt.Printf("%s %v %q, %d bytes\n", token, token, token, len(string(token)))
	// Output: [redacted] [redacted] [redacted], 6 bytes
}

func ExampleAccount_Decode() {
	account, err := sdk.NewAccount("work", map[string]any{"retries": 2}, sdk.Credential{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var block struct {
		Retries  int           `hcl:"retries"`
		Patience time.Duration `hcl:"patience" default:"45s"`
	}
	err = account.Decode(&block)
	fmt.Println(block.Retries, block.Patience, err)
	// Output: 2 45s <nil>
}

func ExampleCredentials_Read() {
	credentials := sdk.NewCredentials()
	secret, first, err := credentials.Read(context.Background(), sdk.Credential{Command: []string{"echo", "t-1234"}})
	_, second, _ := credentials.Read(context.Background(), sdk.Credential{Value: "t-1234"})
	fmt.Println(secret, err, first == second)
	// Output: [redacted] <nil> true
}

func ExampleRunClient() {
	out, err := sdk.RunClient(context.Background(), sdk.Command{Argv: []string{"sh", "-c", "echo $GREETING; exit 3"},
		Env: map[string]string{"GREETING": "hello"}}, time.Minute)
	fmt.Printf("%s%d %v\n", out.Stdout, out.ExitCode, err)
	// Output:
	// hello
	// 3 <nil>
}

func ExampleStartRPC() {
	server := `read request; echo '{"method":"notice"}'; echo '{"id":1,"result":{"used":42}}'`
	rpc, err := sdk.StartRPC(context.Background(), sdk.Command{Argv: []string{"sh", "-c", server}}, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rpc.Close()
	var result struct{ Used int }
	err = rpc.Call("limits/read", nil, &result)
	fmt.Println(result.Used, err)
	// Output: 42 <nil>
}

func ExampleClientTurns() {
	var turns sdk.ClientTurns
	err := turns.Do(context.Background(), "/home/dev/.acme", func(context.Context) {
		fmt.Println("the only client of this login")
	})
	fmt.Println(err)
	// Output:
	// the only client of this login
	// <nil>
}

func ExampleVerdictByStatus() {
	verdict := sdk.VerdictByStatus(sdk.Response{Status: http.StatusServiceUnavailable})
	fmt.Println(verdict.Outcome, verdict.Scope)
	// Output: OUTCOME_OVERLOADED SCOPE_PROVIDER
}
