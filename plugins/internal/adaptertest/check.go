package adaptertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// Verdict is what an adapter must say of an answer.
type Verdict struct {
	Outcome sdk.Outcome
	Scope   sdk.Scope
	Window  string
	// Clears is in seconds since 1970; 0: unknown.
	Clears int64
	Retry  time.Duration
}

// Throttled is a pause of the account; 0: of a length that nothing says.
func Throttled(retry time.Duration) Verdict {
	return Verdict{Outcome: sdk.OutcomeThrottled, Scope: sdk.ScopeAccount, Retry: retry}
}

// Exhausted is a spent window that blocks at this scope until a time in seconds since 1970; 0: unknown.
func Exhausted(scope sdk.Scope, window string, clears int64) Verdict {
	return Verdict{Outcome: sdk.OutcomeQuotaExhausted, Scope: scope, Window: window, Clears: clears}
}

// Classify asks an adapter for its verdict and compares it.
func Classify(t *testing.T, adapter sdk.Adapter, resp sdk.Response, want Verdict) sdk.Verdict {
	t.Helper()
	v, err := adapter.Classify(t.Context(), sdk.Account{}, resp)
	if err != nil {
		t.Fatal(err)
	}
	got := Verdict{v.Outcome, v.Scope, v.WindowID, 0, v.RetryAfter}
	if !v.ClearsAt.IsZero() {
		got.Clears = v.ClearsAt.Unix()
	}
	if got != want {
		t.Errorf("verdict = %+v, want %+v", got, want)
	}
	if v.Reason == "" || strings.Trim(v.Reason, "abcdefghijklmnopqrstuvwxyz_") != "" {
		t.Errorf("reason %q is no code", v.Reason)
	}
	return v
}

// ClassifyAll lets an adapter judge recorded answers, which evidence makes what the host would hand over. want has a verdict
// for each that is a failure, and for no other.
func ClassifyAll(t *testing.T, adapter sdk.Adapter, answers map[string]Exchange, evidence func(Exchange) sdk.Response, want map[string]Verdict) {
	t.Helper()
	for id, e := range answers {
		resp := evidence(e)
		judgeable := resp.Status >= 400 || resp.Event != nil
		expected, listed := want[id]
		if judgeable != listed {
			t.Errorf("%s: judgeable %v, expected %v", id, judgeable, listed)
		}
		if listed {
			t.Run(id, func(t *testing.T) { Classify(t, adapter, resp, expected) })
		}
	}
	for id := range want {
		if _, recorded := answers[id]; !recorded {
			t.Errorf("%s is not recorded", id)
		}
	}
}

// NewAccount makes the account "work" as the host would.
func NewAccount(t *testing.T, provider, account map[string]any, credential sdk.Credential) sdk.Account {
	t.Helper()
	made, err := sdk.NewAccount("work", account, credential)
	if err != nil {
		t.Fatal(err)
	}
	config, err := sdk.NewConfig(provider, made)
	if err != nil {
		t.Fatal(err)
	}
	return config.Accounts[0]
}

// NewHome makes a folder of an official client with a login in that file; an empty login: with none.
func NewHome(t *testing.T, file, login string) string {
	t.Helper()
	home := t.TempDir()
	if login != "" {
		if err := os.WriteFile(filepath.Join(home, file), []byte(login), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// Refused checks that an error is a refusal of this code which names the account and holds nothing of a credential.
func Refused(t *testing.T, err error, account string, want sdk.RefusalCode) {
	t.Helper()
	var refused *sdk.RefusalError
	if !errors.As(err, &refused) || refused.Code != want {
		t.Fatalf("error = %v, want a refusal %v", err, want)
	}
	if !strings.Contains(refused.Reason, account) {
		t.Errorf("reason %q does not name the account %s", refused.Reason, account)
	}
	if strings.Contains(refused.Reason, "CANARY") {
		t.Errorf("reason %q holds a credential", refused.Reason)
	}
}

// Configuration is one configuration and the attribute that validation finds fault with.
type Configuration struct {
	Name              string
	Provider, Account map[string]any
	From              sdk.Credential
	// Want is the attribute of the first finding; "-": there is no finding.
	Want string
}

// Validate lets an adapter validate each configuration.
func Validate(t *testing.T, adapter sdk.Validator, cases []Configuration) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			config, err := sdk.NewConfig(c.Provider, NewAccount(t, c.Provider, c.Account, c.From))
			if err != nil {
				t.Fatal(err)
			}
			found := adapter.Validate(t.Context(), config)
			if (len(found) == 0) != (c.Want == "-") || len(found) > 0 && found[0].Attribute != c.Want {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// RefuseTwin checks that an adapter refuses a second account with the home of another.
func RefuseTwin(t *testing.T, adapter sdk.Validator) {
	t.Helper()
	var accounts []sdk.Account
	for _, name := range []string{"work", "twin"} {
		account, err := sdk.NewAccount(name, map[string]any{"home": "/made-up"}, sdk.Credential{})
		if err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, account)
	}
	config, err := sdk.NewConfig(nil, accounts...)
	if err != nil {
		t.Fatal(err)
	}
	if found := adapter.Validate(t.Context(), config); len(found) != 1 || found[0].Account != "twin" || found[0].Attribute != "home" {
		t.Errorf("findings = %+v", found)
	}
}

// SignIn is one account and what checking its sign-in must say.
type SignIn struct {
	Name              string
	Provider, Account map[string]any
	From              sdk.Credential
	State             sdk.AuthState
	Eligible          bool
}

// CheckAuth lets an adapter check each account. One that is not eligible needs a reason; none may tell who the user is.
func CheckAuth(t *testing.T, adapter sdk.AuthChecker, cases []SignIn) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := adapter.CheckAuth(t.Context(), NewAccount(t, c.Provider, c.Account, c.From))
			if err != nil {
				t.Fatal(err)
			}
			CheckSignIn(t, got, c.State, c.Eligible)
		})
	}
}

// CheckSignIn compares what was found of a sign-in.
func CheckSignIn(t *testing.T, got sdk.AuthStatus, state sdk.AuthState, eligible bool) {
	t.Helper()
	if got.State != state || got.Eligible != eligible || got.Eligible == (got.Reason != "") {
		t.Errorf("sign-in = %+v, want %v, eligible %v", got, state, eligible)
	}
	if strings.Contains(got.Method+got.Reason, "@") {
		t.Errorf("sign-in %+v tells who the user is", got)
	}
}
