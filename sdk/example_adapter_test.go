package sdk_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// tiny is an adapter for a provider that tells of one day's window in a header.
type tiny struct{}

type tinyAccount struct {
	Token sdk.Secret `hcl:"token,required" doc:"The account's token."`
}

func (tiny) Describe() sdk.Descriptor {
	return sdk.Descriptor{Name: "tiny", Version: "1.0.0", Account: tinyAccount{}, Profile: sdk.Profile{
		Routes:    []sdk.Route{{Method: http.MethodPost, Path: "/v1/chat", Kind: sdk.RouteTurn, Retryable: true}},
		Identity:  sdk.Identity{Session: []sdk.Extractor{{Header: "tiny-session"}}, Model: []sdk.Extractor{{BodyPointer: "/model"}}},
		Exposure:  sdk.Exposure{ResponseHeaders: []string{"tiny-used-percent", "retry-after"}},
		Stream:    sdk.StreamGrammar{Framing: sdk.FramingNone},
		Headers:   sdk.HeaderPolicy{Credentials: []string{"authorization"}},
		Fallbacks: sdk.JSONFallbacks(`{"error":"{{sentence}}"}`),
		Windows:   []sdk.WindowDeclaration{sdk.WindowOf(24 * time.Hour).Declaration()},
	}}
}

func (tiny) Lease(_ context.Context, account sdk.Account, _ sdk.LeaseRequest) (sdk.Lease, error) {
	var block tinyAccount
	if err := account.Decode(&block); err != nil {
		return sdk.Lease{}, err
	}
	return sdk.Lease{BaseURL: "https://tiny.example", Generation: "configured",
		Set: map[string]string{"authorization": "Bearer " + string(block.Token)}}, nil
}

func (tiny) Classify(_ context.Context, _ sdk.Account, resp sdk.Response) (sdk.Verdict, error) {
	return sdk.VerdictByStatus(resp), nil
}

func (tiny) Observe(_ context.Context, _ sdk.Account, obs sdk.Observation) ([]sdk.Window, error) {
	window := sdk.WindowOf(24 * time.Hour)
	window.UsedPercent = sdk.ParsePercent(sdk.OneValue(obs.Header, "tiny-used-percent"))
	return []sdk.Window{window}, nil
}

// A whole adapter. Its main is
//
//	func main() { sdk.Serve(func() sdk.Adapter { return tiny{} }) }
func Example() {
	var adapter sdk.Adapter = tiny{}
	account, err := sdk.NewAccount("work", map[string]string{"token": "t-1234"}, sdk.Credential{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	lease, err := adapter.Lease(ctx, account, sdk.LeaseRequest{})
	fmt.Println(account, "gets", lease, err)

	verdict, err := adapter.Classify(ctx, account, sdk.Response{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}})
	fmt.Println(verdict.Outcome, verdict.Scope, verdict.RetryAfter, err)

	windows, err := adapter.Observe(ctx, account, sdk.Observation{Header: http.Header{"Tiny-Used-Percent": {"42.5"}}})
	fmt.Println(windows[0].ID, *windows[0].UsedPercent, err)
	// Output:
	// account work gets [redacted] <nil>
	// OUTCOME_THROTTLED SCOPE_ACCOUNT 30s <nil>
	// 1d 42.5 <nil>
}

// metered is tiny with one service more: to have the method is to offer it.
type metered struct{ tiny }

// ReadQuota asks the official client, which prints what is used of the day.
func (metered) ReadQuota(ctx context.Context, _ sdk.Account) (sdk.QuotaReading, error) {
	out, err := sdk.RunClient(ctx, sdk.Command{Argv: []string{"echo", "42.5"}}, 10*time.Second)
	if err != nil {
		return sdk.QuotaReading{}, err
	}
	window := sdk.WindowOf(24 * time.Hour)
	window.UsedPercent = sdk.ParsePercent(strings.TrimSpace(string(out.Stdout)))
	return sdk.QuotaReading{Windows: []sdk.Window{window}, Auth: sdk.AuthSignedIn}, nil
}

// An adapter that reads quota from an official source.
func ExampleQuotaReader() {
	var adapter sdk.Adapter = metered{}
	reading, err := adapter.(sdk.QuotaReader).ReadQuota(context.Background(), sdk.Account{Name: "work"})
	fmt.Println(reading.Windows[0].ID, *reading.Windows[0].UsedPercent, reading.Auth, err)
	// Output: 1d 42.5 AUTH_STATE_SIGNED_IN <nil>
}
