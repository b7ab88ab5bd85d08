package claude

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

var now = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)

func TestLeaseIsTheAccessTokenOfTheHome(t *testing.T) {
	client, log := fakeClient(t, "2.1.332-creds", "")
	home := homeWith(t, loginFile(canary, now.Add(time.Hour)))
	before, _ := os.Stat(filepath.Join(home, ".credentials.json"))
	lease, err := at(now).Lease(t.Context(), homeAccount(t, client, home), sdk.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.BaseURL != "https://api.anthropic.com" || !maps.Equal(lease.Set, map[string]string{"authorization": "Bearer " + canary}) ||
		!slices.Equal(lease.Remove, []string{"x-api-key"}) || lease.Extend["anthropic-beta"] != betaOAuth {
		t.Errorf("lease of %s has other headers than expected", lease.BaseURL)
	}
	if !lease.ValidUntil.Equal(now.Add(time.Hour - 30*time.Second)) {
		t.Errorf("valid until %v", lease.ValidUntil)
	}
	if lease.Generation == "" || strings.Contains(lease.Generation, "CANARY") {
		t.Errorf("generation %q", lease.Generation)
	}
	if after, _ := os.Stat(filepath.Join(home, ".credentials.json")); !after.ModTime().Equal(before.ModTime()) || runs(t, log) != nil {
		t.Error("a good login was touched, or the official client was started for it")
	}
}

func TestAnExpiredLoginIsRenewedByTheOfficialClientOnce(t *testing.T) {
	client, log := fakeClient(t, "2.1.332-creds", loginFile("sk-ant-oat01-renewed", now.Add(time.Hour)))
	account := homeAccount(t, client, homeWith(t, loginFile(canary, now.Add(-time.Hour))))
	t.Setenv("ANTHROPIC_API_KEY", "CANARY-key")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "x: y")
	a := at(now)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			lease, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
			if err != nil || lease.Set["authorization"] != "Bearer sk-ant-oat01-renewed" {
				t.Errorf("lease after renewal: %v", err)
			}
		})
	}
	callers.Wait()
	if got := runs(t, log); !slices.Equal(got, []string{"auth status"}) {
		t.Errorf("the official client ran %q", got)
	}
}

func TestALoginThatStaysExpiredIsRefusedWithTheRemedy(t *testing.T) {
	client, log := fakeClient(t, "2.1.332-creds-expired", "")
	account := homeAccount(t, client, homeWith(t, loginFile(canary, now.Add(-time.Hour))))
	a := at(now)
	for range 5 {
		_, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
		adaptertest.Refused(t, err, "claude/work", sdk.RefusalExpired)
		if !strings.Contains(err.Error(), "noria connect claude/work") {
			t.Errorf("%v does not say what to do", err)
		}
	}
	if got := runs(t, log); len(got) != 1 {
		t.Errorf("the official client ran %d times within a minute", len(got))
	}
	a.now = func() time.Time { return now.Add(time.Minute) }
	_, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
	adaptertest.Refused(t, err, "claude/work", sdk.RefusalExpired)
	if got := runs(t, log); len(got) != 2 {
		t.Errorf("the official client ran %d times after a minute, want another try", len(got))
	}
}

func TestARefusedLoginIsGivenToTheOfficialClient(t *testing.T) {
	client, log := fakeClient(t, "2.1.332-creds", loginFile("sk-ant-oat01-renewed", now.Add(time.Hour)))
	account := homeAccount(t, client, homeWith(t, loginFile(canary, now.Add(time.Hour))))
	a := at(now)
	first, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.Lease(t.Context(), account, sdk.LeaseRequest{Refresh: true, RefusedGeneration: first.Generation})
	if err != nil || second.Generation == first.Generation || second.Set["authorization"] != "Bearer sk-ant-oat01-renewed" {
		t.Fatalf("lease after a refusal: %v", err)
	}
	third, err := a.Lease(t.Context(), account, sdk.LeaseRequest{Refresh: true, RefusedGeneration: first.Generation})
	if err != nil || third.Generation != second.Generation {
		t.Fatalf("lease after the refusal of an older one: %v", err)
	}
	if got := runs(t, log); len(got) != 1 {
		t.Errorf("the official client ran %d times", len(got))
	}
}

func TestAnAccountThatCannotServeSaysWhy(t *testing.T) {
	client, _ := fakeClient(t, "2.1.332-none", "")
	unreadable := homeWith(t, "")
	if err := os.Mkdir(filepath.Join(unreadable, ".credentials.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	noInference := strings.ReplaceAll(loginFile(canary, now.Add(time.Hour)), "user:inference", "user:profile")
	cases := []struct {
		name    string
		account map[string]any
		from    sdk.Credential
		want    sdk.RefusalCode
	}{
		{"a home without a login", map[string]any{"home": homeWith(t, "")}, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a home without a subscription", map[string]any{"home": homeWith(t, `{"mcpOAuth":{}}`)}, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a broken login", map[string]any{"home": homeWith(t, `{"claudeAiOauth":{"accessToken":"CANARY`)}, sdk.Credential{}, sdk.RefusalTemporary},
		{"an unreadable login", map[string]any{"home": unreadable}, sdk.Credential{}, sdk.RefusalTemporary},
		{"a login without inference", map[string]any{"home": homeWith(t, noInference)}, sdk.Credential{}, sdk.RefusalNotEligible},
		{"neither home nor credential", nil, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a key that is not called one", nil, sdk.Credential{Value: "sk-ant-api03-CANARY"}, sdk.RefusalNotEligible},
		{"a subscription that is called a key", map[string]any{"api_key": true}, sdk.Credential{Value: canary}, sdk.RefusalNotEligible},
		{"a credential file that is absent", nil, sdk.Credential{File: filepath.Join(unreadable, "none")}, sdk.RefusalSignedOut},
		{"a credential that is empty", nil, sdk.Credential{Command: []string{"true"}}, sdk.RefusalSignedOut},
		{"a credential command that fails", nil, sdk.Credential{Command: []string{"false"}}, sdk.RefusalTemporary},
		{"a credential file that is a folder", nil, sdk.Credential{File: unreadable}, sdk.RefusalTemporary},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := at(now).Lease(t.Context(), adaptertest.NewAccount(t, map[string]any{"client": client}, c.account, c.from), sdk.LeaseRequest{})
			adaptertest.Refused(t, err, "claude/work", c.want)
		})
	}
}

func TestCredentialsTravelInTheHeaderOfTheirKind(t *testing.T) {
	subscription := adaptertest.NewAccount(t, nil, nil, sdk.Credential{Value: canary})
	key := adaptertest.NewAccount(t, nil, map[string]any{"api_key": true}, sdk.Credential{Value: "sk-ant-api03-made-up"})
	lease, err := at(now).Lease(t.Context(), subscription, sdk.LeaseRequest{})
	if err != nil || lease.Set["authorization"] != "Bearer "+canary || !slices.Equal(lease.Remove, []string{"x-api-key"}) || !lease.ValidUntil.IsZero() {
		t.Errorf("lease of a subscription token: %v", err)
	}
	lease, err = at(now).Lease(t.Context(), key, sdk.LeaseRequest{})
	if err != nil || lease.Set["x-api-key"] != "sk-ant-api03-made-up" || !slices.Equal(lease.Remove, []string{"authorization"}) || lease.Extend != nil {
		t.Errorf("lease of a key: %v", err)
	}
}

func TestConfigurationIsCheckedBeyondItsSchema(t *testing.T) {
	home := map[string]any{"home": "/made-up"}
	adaptertest.Validate(t, New(), []adaptertest.Configuration{
		{Name: "a home", Account: home, Want: "-"},
		{Name: "a credential", From: sdk.Credential{Value: "x"}, Want: "-"},
		{Name: "a loopback upstream", Provider: map[string]any{"upstream": "http://127.0.0.1:9000"}, Account: home, Want: "-"},
		{Name: "an open upstream", Provider: map[string]any{"upstream": "http://example.com"}, Account: home, Want: "upstream"},
		{Name: "no login", Want: ""},
		{Name: "two logins", Account: home, From: sdk.Credential{Value: "x"}, Want: "home"},
		{Name: "a key in a home", Account: map[string]any{"home": "/made-up", "api_key": true}, Want: "api_key"},
	})
}

func TestAKeyHasNoWindows(t *testing.T) {
	a := New()
	if windows, unmetered := a.Windows(adaptertest.NewAccount(t, nil, map[string]any{"api_key": true}, sdk.Credential{Value: "x"})); !unmetered || windows != nil {
		t.Errorf("windows of a key = %v, %v", windows, unmetered)
	}
	if windows, unmetered := a.Windows(adaptertest.NewAccount(t, nil, nil, sdk.Credential{Value: "x"})); unmetered || len(windows) != 2 {
		t.Errorf("windows of a subscription = %v, %v", windows, unmetered)
	}
}

func TestOneLoginIsNotTwoAccounts(t *testing.T) { adaptertest.RefuseTwin(t, New()) }
