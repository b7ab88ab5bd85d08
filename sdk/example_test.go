package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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

func ExamplePercentOf() {
	used := sdk.PercentOf(100 - 42.5) // a source that tells what remains
	fmt.Println(*used, sdk.PercentOf(-42) == nil)
	// Output: 57.5 true
}

func ExampleParseDecimal() {
	value, ok := sdk.ParseDecimal("12.50")
	_, hex := sdk.ParseDecimal("0x1p-1")
	fmt.Println(value, ok, hex)
	// Output: 12.5 true false
}

func ExampleParseUnixSeconds() {
	at, ok := sdk.ParseUnixSeconds("1796014800")
	_, milliseconds := sdk.ParseUnixSeconds("1796014800000")
	fmt.Println(at.Format(time.RFC3339), ok, milliseconds)
	// Output: 2026-11-30T05:00:00Z true false
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

func ExampleWindowLabel() {
	fmt.Println(sdk.WindowLabel(90*time.Minute), sdk.WindowLabel(24*time.Hour), sdk.WindowLabel(7*24*time.Hour))
	// Output: 90min 1d weekly
}

func ExampleWindow_Declaration() {
	profile := sdk.Profile{Windows: []sdk.WindowDeclaration{
		sdk.WindowOf(5 * time.Hour).Declaration(), sdk.WindowOf(7 * 24 * time.Hour).Declaration(),
	}}
	fmt.Println(profile.Windows[0].ID, profile.Windows[1].ID)
	// Output: 5h weekly
}

func ExampleOneValue() {
	header := http.Header{}
	header.Add("X-Used", "10")
	header.Add("X-Used", "90")
	fmt.Printf("%q\n", sdk.OneValue(header, "x-used"))
	// Output: ""
}

func ExampleRetryAfter() {
	now := time.Date(2026, time.November, 30, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"30", "Mon, 30 Nov 2026 00:02:00 GMT", "-5", "99999999999999"} {
		fmt.Println(sdk.RetryAfter(http.Header{"Retry-After": {text}}, now))
	}
	// Output:
	// 30s
	// 2m0s
	// 0s
	// 0s
}

func ExampleParseUpstream() {
	for _, text := range []string{"https://api.acme.example/v1/", "http://127.0.0.1:9000", "http://api.acme.example"} {
		base, err := sdk.ParseUpstream(text)
		fmt.Println(base, err)
	}
	// Output:
	// https://api.acme.example/v1 <nil>
	// http://127.0.0.1:9000 <nil>
	//  must be an https URL, or http on loopback, without user, query or fragment
}

func ExampleJSONFallbacks() {
	fallbacks := sdk.JSONFallbacks(`{"error":"{{sentence}}"}`)
	fmt.Println(fallbacks.WrongKey.Status, fallbacks.UnavailableUntil.Status, string(fallbacks.Unavailable.Body))
	// Output: 401 429 {"error":"{{sentence}}"}
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

func ExampleNewConfig() {
	account, err := sdk.NewAccount("work", nil, sdk.Credential{})
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := sdk.NewConfig(map[string]string{"endpoint": "https://acme.example"}, account)
	if err != nil {
		fmt.Println(err)
		return
	}
	var block struct {
		Endpoint string `hcl:"endpoint"`
	}
	err = config.Accounts[0].DecodeProvider(&block)
	fmt.Println(config.Accounts[0].Name, block.Endpoint, err)
	// Output: work https://acme.example <nil>
}

func ExampleReadJSONFile() {
	dir, err := os.MkdirTemp("", "acme-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "auth.json")
	if err := os.WriteFile(path, []byte(`{"token":"t-1234"}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	var login struct{ Token sdk.Secret }
	version, err := sdk.ReadJSONFile(path, &login)
	_, missing := sdk.ReadJSONFile(filepath.Join(dir, "none.json"), &login)
	fmt.Println(login.Token, version != "", err, errors.Is(missing, fs.ErrNotExist))
	// Output: [redacted] true <nil> true
}

func ExampleCredentials_Read() {
	credentials := sdk.NewCredentials()
	secret, first, err := credentials.Read(context.Background(), sdk.Credential{Command: []string{"echo", "t-1234"}})
	_, second, _ := credentials.Read(context.Background(), sdk.Credential{Value: "t-1234"})
	fmt.Println(secret, err, first == second)
	// Output: [redacted] <nil> true
}

func ExampleCredentialRefusal() {
	credentials := sdk.NewCredentials()
	for _, command := range []string{"true", "false"} { // one prints nothing, one fails
		_, _, err := credentials.Read(context.Background(), sdk.Credential{Command: []string{command}})
		fmt.Println(sdk.CredentialRefusal(err))
	}
	// Output:
	// REFUSAL_CODE_SIGNED_OUT
	// REFUSAL_CODE_TEMPORARY
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

func ExampleRPCError_Find() {
	server := `read request; echo '{"id":1,"error":{"code":-32000,"message":"GET /limits failed: 503 <html>"}}'`
	rpc, err := sdk.StartRPC(context.Background(), sdk.Command{Argv: []string{"sh", "-c", server}}, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rpc.Close()
	var refused *sdk.RPCError
	if errors.As(rpc.Call("limits/read", nil, nil), &refused) {
		fmt.Println(refused, "with status", refused.Find(regexp.MustCompile(`failed: (\d{3}) `)))
	}
	// Output: call limits/read: error -32000 with status 503
}

func ExampleRenewals() {
	var renewals sdk.Renewals
	now := time.Now()
	// A login that its client cannot renew does not start the client with every lease.
	fmt.Println(renewals.Due("/home/dev/.acme", "v1", now), renewals.Due("/home/dev/.acme", "v1", now.Add(time.Second)))
	fmt.Println(renewals.Due("/home/dev/.acme", "v2", now.Add(time.Second)))
	// Output:
	// true false
	// true
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
