package plugintest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// adapterVariable makes the test binary an adapter with the defect that its value names; "none" has none.
const adapterVariable = "PLUGINTEST_DEFECT"

func TestMain(m *testing.M) {
	if os.Getenv(adapterVariable) == "first minor" {
		new(firstMinor).serve(os.Args[1:])
		return
	}
	if defect := os.Getenv(adapterVariable); defect != "" {
		sdk.Serve(func() sdk.Adapter { return &adapter{defect: defect} })
	}
	os.Exit(m.Run())
}

const day = 24 * time.Hour

// adapter is one that conforms, but for its defect.
type adapter struct {
	defect string
	calls  atomic.Int64
}

func (a *adapter) has(defect string) bool { return a.defect == defect }

type providerBlock struct {
	Endpoint string `hcl:"endpoint" default:"http://127.0.0.1:1" doc:"Base URL."`
}

type accountBlock struct {
	Token sdk.Secret `hcl:"token" doc:"The account's token."`
}

func (a *adapter) Describe() sdk.Descriptor {
	d := sdk.Descriptor{Name: "sample", Version: "1.0.0", Config: providerBlock{}, Account: accountBlock{}, Profile: sdk.Profile{
		Routes:    []sdk.Route{{Method: "POST", Path: "/turn", Kind: sdk.RouteTurn}},
		Identity:  sdk.Identity{Session: []sdk.Extractor{{Header: "x-session"}}},
		Exposure:  sdk.Exposure{ResponseHeaders: []string{"x-used", "x-reset", "retry-after"}, ErrorBodyBytes: 1024},
		Stream:    sdk.StreamGrammar{Framing: sdk.FramingNone},
		Headers:   sdk.HeaderPolicy{Credentials: []string{"authorization"}},
		Fallbacks: sdk.JSONFallbacks(`{"error":"{{sentence}}"}`),
		Windows:   []sdk.WindowDeclaration{sdk.WindowOf(day).Declaration()},
	}}
	switch a.defect {
	case "describes itself differently each time":
		d.Version = fmt.Sprintf("1.0.%d", rand.IntN(math.MaxInt32))
	case "takes the session from a header of every client":
		d.Profile.Identity.Session = append(d.Profile.Identity.Session, sdk.Extractor{Header: "user-agent"})
	case "exposes the credential":
		d.Profile.Exposure.ResponseHeaders = append(d.Profile.Exposure.ResponseHeaders, "set-*")
		d.Profile.Exposure.RequestHeaders = []string{"authorization"}
	case "has no turn":
		d.Profile.Routes[0].Kind = sdk.RouteAux
	case "has no fallback":
		d.Profile.Fallbacks.WrongKey = sdk.Answer{}
	case "declares no window":
		d.Profile.Windows = nil
	case "has a pattern without a group":
		d.Profile.Identity.Session[0].Pattern = "^[a-z]+$"
	case "does not name the credential's header":
		d.Profile.Headers.Credentials = nil
	}
	return d
}

func (a *adapter) Lease(_ context.Context, account sdk.Account, req sdk.LeaseRequest) (sdk.Lease, error) {
	var block accountBlock
	if err := account.Decode(&block); err != nil {
		return sdk.Lease{}, err
	}
	if block.Token == "" {
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalSignedOut, "Set the token.")
	}
	lease := sdk.Lease{BaseURL: "http://127.0.0.1:1", Set: map[string]string{"authorization": "Bearer " + string(block.Token)}, Generation: "g"}
	switch a.defect {
	case "leases to anybody":
		lease.BaseURL = "http://upstream.example"
	case "leases without a generation":
		lease.Generation = ""
	case "tells the token in the generation":
		lease.Generation = string(block.Token)
	case "changes the generation each time":
		lease.Generation = strconv.FormatInt(a.calls.Add(1), 10)
	case "leases what has expired":
		lease.ValidUntil = time.Now().Add(-time.Minute)
	case "prints the token":
		fmt.Println("leased", string(block.Token))
	case "tells the token in an error":
		if req.Refresh {
			return sdk.Lease{}, errors.New("refresh " + string(block.Token))
		}
	case "names the credential's header after a scheme of its own":
		lease.Set = map[string]string{"x-own": string(block.Token)}
	}
	return lease, nil
}

func (a *adapter) Classify(ctx context.Context, account sdk.Account, r sdk.Response) (sdk.Verdict, error) {
	verdict := sdk.VerdictByStatus(r)
	if string(r.Body) == `"quota"` || string(r.Body) == "quota" {
		window := a.window(r.Header, r.ObservedAt)
		window.State = sdk.StateExhausted
		verdict = sdk.Verdict{Outcome: sdk.OutcomeQuotaExhausted, Scope: sdk.ScopeAccount, Reason: "quota", Windows: []sdk.Window{window}}
	}
	switch a.defect {
	case "takes its time":
		time.Sleep(1500 * time.Millisecond)
	case "panics at an empty body":
		_ = r.Body[0]
	case "repeats the body in the reason":
		verdict.Reason = string(r.Body)
	case "blames the account for the provider's trouble":
		if verdict.Outcome == sdk.OutcomeOverloaded {
			verdict.Scope = sdk.ScopeAccount
		}
	case "has no outcome for what it does not know":
		if verdict.Outcome == sdk.OutcomeUnknownError {
			verdict = sdk.Verdict{}
		}
	case "mixes up calls at the same time":
		now := a.calls.Add(1)
		time.Sleep(time.Millisecond)
		if a.calls.Load() != now {
			verdict.Outcome, verdict.Scope, verdict.Reason = sdk.OutcomeUnknownError, sdk.ScopeRequest, "mixed_up"
		}
	case "tells the token in an answer":
		var block accountBlock
		_ = account.Decode(&block)
		verdict.Model = string(block.Token)
	}
	return verdict, nil
}

func (a *adapter) Observe(_ context.Context, _ sdk.Account, o sdk.Observation) ([]sdk.Window, error) {
	window := a.window(o.Header, o.ObservedAt)
	switch a.defect {
	case "takes absent for nothing used":
		if window.UsedPercent == nil {
			window.UsedPercent = new(float64)
		}
	case "gives unknown a percentage":
		if window.UsedPercent == nil {
			window.UsedPercent, window.State = new(float64), sdk.StateUnknown
		}
	case "exhausts what it cannot read":
		if window.UsedPercent == nil && o.Header.Get("x-used") != "" {
			window.State = sdk.StateExhausted
		}
	case "shows a window for every number":
		windows := make([]sdk.Window, 0, 20)
		for i := range 20 {
			windows = append(windows, sdk.Window{ID: strconv.Itoa(i), Kind: sdk.WindowRolling})
		}
		return windows, nil
	}
	return []sdk.Window{window}, nil
}

func (a *adapter) window(header http.Header, at time.Time) sdk.Window {
	window := sdk.WindowOf(day)
	window.UsedPercent = sdk.ParsePercent(sdk.OneValue(header, "x-used"))
	if a.has("parses loosely") {
		if used, err := strconv.ParseFloat(header.Get("x-used"), 64); err == nil {
			window.UsedPercent = &used
		}
	}
	reset, _ := sdk.ParseUnixSeconds(sdk.OneValue(header, "x-reset"))
	window.ResetsAt = sdk.ResetWithin(reset, at, day)
	if a.has("believes every reset") {
		window.ResetsAt = reset
	}
	return window
}

func (a *adapter) Configure(context.Context, sdk.Config) error {
	if a.has("cannot be configured again") && a.calls.Add(1) > 1 {
		return errors.New("configured already")
	}
	return nil
}

func (a *adapter) CheckAuth(ctx context.Context, _ sdk.Account) (sdk.AuthStatus, error) {
	if a.has("gives no reason") {
		return sdk.AuthStatus{State: sdk.AuthSignedIn}, nil
	}
	return sdk.AuthStatus{State: sdk.AuthSignedIn, Eligible: true}, nil
}

func (a *adapter) LoginCommand(context.Context, sdk.Account) (sdk.Command, error) {
	return sdk.Command{Argv: []string{"client", "login"}}, nil
}

func (a *adapter) LaunchFlags() []string { return nil }

func (a *adapter) LaunchCommand(context.Context, sdk.LaunchRequest) (sdk.Command, error) {
	if a.has("puts the key into the command line") {
		return sdk.Command{Argv: []string{"client", "--key={{key}}"}}, nil
	}
	return sdk.Command{Argv: []string{"client", "{{args}}"}, Env: map[string]string{"KEY": "{{key}}"}}, nil
}
