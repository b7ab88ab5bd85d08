package codex

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

func TestLeaseIsTheAccessTokenOfTheHome(t *testing.T) {
	client, log := fakeClient(t, "c00", "")
	access := token(now.Add(time.Hour), "a")
	lease, err := at(now).Lease(t.Context(), homeAccount(t, client, homeWith(t, loginFile(access))), sdk.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"authorization": "Bearer " + access, "chatgpt-account-id": "acct_a"}
	if lease.BaseURL != "https://chatgpt.com/backend-api/codex" || !maps.Equal(lease.Set, want) ||
		!slices.Contains(lease.Remove, "x-openai-account-routing-override") || lease.Extend != nil {
		t.Errorf("lease of %s has other headers than expected", lease.BaseURL)
	}
	if !lease.ValidUntil.Equal(now.Add(time.Hour - 30*time.Second)) {
		t.Errorf("valid until %v", lease.ValidUntil)
	}
	if lease.Generation == "" || strings.Contains(lease.Generation, "CANARY") {
		t.Errorf("generation %q", lease.Generation)
	}
	if started := calls(t, log, "start"); len(started) != 0 {
		t.Error("the official client was started for a good login")
	}
}

func TestALoginNearItsEndIsRenewedByTheOfficialClientOnce(t *testing.T) {
	renewed := token(now.Add(time.Hour), "renewed")
	for name, left := range map[string]time.Duration{"five minutes left": renewAhead, "over": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			client, log := fakeClient(t, "c00", loginFile(renewed))
			t.Setenv("OPENAI_API_KEY", "CANARY-key")
			account := homeAccount(t, client, homeWith(t, loginFile(token(now.Add(left), "old"))))
			a := at(now)
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					lease, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
					if err != nil || lease.Set["authorization"] != "Bearer "+renewed {
						t.Errorf("lease after renewal: %v", err)
					}
				})
			}
			callers.Wait()
			started := calls(t, log, "start")
			if len(started) != 1 || strings.Contains(started[0], "CANARY") || !strings.Contains(started[0], "app-server --stdio") {
				t.Errorf("the official client was started %q", started)
			}
			if asked := calls(t, log, "account/read"); !slices.Equal(asked, []string{`account/read {"refreshToken":false}`}) {
				t.Errorf("the official client was asked %q", asked)
			}
		})
	}
}

func TestARefusedLoginIsRenewedOnlyOnce(t *testing.T) {
	renewed := token(now.Add(time.Hour), "renewed")
	client, log := fakeClient(t, "c00", loginFile(renewed))
	account := homeAccount(t, client, homeWith(t, loginFile(token(now.Add(time.Hour), "old"))))
	a := at(now)
	first, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		second, err := a.Lease(t.Context(), account, sdk.LeaseRequest{Refresh: true, RefusedGeneration: first.Generation})
		if err != nil || second.Generation == first.Generation || second.Set["authorization"] != "Bearer "+renewed {
			t.Fatalf("lease after a refusal: %v", err)
		}
	}
	if asked := calls(t, log, "account/read"); !slices.Equal(asked, []string{`account/read {"refreshToken":true}`}) {
		t.Errorf("the official client was asked %q", asked)
	}
}

func TestALoginThatCannotBeRenewedServesToItsEndAndIsThenRefused(t *testing.T) {
	client, log := fakeClient(t, "e5_refresh_token_reused", "")
	account := homeAccount(t, client, homeWith(t, loginFile(token(now.Add(2*time.Minute), "last"))))
	a := at(now)
	for range 3 {
		if _, err := a.Lease(t.Context(), account, sdk.LeaseRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if started := calls(t, log, "start"); len(started) != 1 {
		t.Errorf("the official client was started %d times within a minute", len(started))
	}
	a.now = func() time.Time { return now.Add(2 * time.Minute) }
	_, err := a.Lease(t.Context(), account, sdk.LeaseRequest{})
	adaptertest.Refused(t, err, "codex/work", sdk.RefusalExpired)
	if !strings.Contains(err.Error(), "noria connect codex/work") {
		t.Errorf("%v does not say what to do", err)
	}
}

func TestAnAccountThatCannotServeSaysWhy(t *testing.T) {
	client, _ := fakeClient(t, "v01_notloggedin", "")
	unreadable := homeWith(t, "")
	if err := os.Mkdir(filepath.Join(unreadable, "auth.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		account map[string]any
		from    sdk.Credential
		want    sdk.RefusalCode
	}{
		{"a home without a login", map[string]any{"home": homeWith(t, "")}, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a home with an empty login", map[string]any{"home": homeWith(t, `{}`)}, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a broken login", map[string]any{"home": homeWith(t, `{"tokens":{"access_token":"CANARY`)}, sdk.Credential{}, sdk.RefusalTemporary},
		{"an unreadable login", map[string]any{"home": unreadable}, sdk.Credential{}, sdk.RefusalTemporary},
		{"a home with a key that is not called one", map[string]any{"home": homeWith(t, keyFile)}, sdk.Credential{}, sdk.RefusalNotEligible},
		{"a key that is wanted and not there", map[string]any{"home": homeWith(t, loginFile("x")), "api_key": true}, sdk.Credential{}, sdk.RefusalSignedOut},
		{"neither home nor credential", nil, sdk.Credential{}, sdk.RefusalSignedOut},
		{"a credential that is a key", nil, sdk.Credential{Value: "sk-CANARY"}, sdk.RefusalNotEligible},
		{"a credential that is over", nil, sdk.Credential{Value: token(now, "over")}, sdk.RefusalExpired},
		{"a credential file that is absent", nil, sdk.Credential{File: filepath.Join(unreadable, "none")}, sdk.RefusalSignedOut},
		{"a credential that is empty", nil, sdk.Credential{Command: []string{"true"}}, sdk.RefusalSignedOut},
		{"a credential command that fails", nil, sdk.Credential{Command: []string{"false"}}, sdk.RefusalTemporary},
		{"a credential file that is a folder", nil, sdk.Credential{File: unreadable}, sdk.RefusalTemporary},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := at(now).Lease(t.Context(), adaptertest.NewAccount(t, map[string]any{"client": client}, c.account, c.from), sdk.LeaseRequest{})
			adaptertest.Refused(t, err, "codex/work", c.want)
		})
	}
}

func TestKeysGoToTheAPIAndTokensToTheBackend(t *testing.T) {
	access := token(now.Add(time.Hour), "a")
	cases := []struct {
		name      string
		account   map[string]any
		from      sdk.Credential
		base      string
		authorize string
		workspace string
	}{
		{"a key of a credential", map[string]any{"api_key": true}, sdk.Credential{Value: "sk-made-up"}, "https://api.openai.com/v1", "sk-made-up", ""},
		{"a key of a home", map[string]any{"api_key": true, "home": homeWith(t, keyFile)}, sdk.Credential{}, "https://api.openai.com/v1", "sk-CANARY", ""},
		{"a token of a credential", nil, sdk.Credential{Value: access}, "https://chatgpt.com/backend-api/codex", access, "acct_claimed"},
		{"a token that says nothing", nil, sdk.Credential{Value: "opaque"}, "https://chatgpt.com/backend-api/codex", "opaque", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lease, err := at(now).Lease(t.Context(), adaptertest.NewAccount(t, nil, c.account, c.from), sdk.LeaseRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if lease.BaseURL != c.base || lease.Set["authorization"] != "Bearer "+c.authorize || lease.Set["chatgpt-account-id"] != c.workspace {
				t.Errorf("lease of %s has other headers than expected", lease.BaseURL)
			}
			if slices.Contains(lease.Remove, "chatgpt-account-id") != (c.workspace == "") {
				t.Errorf("removed headers = %v", lease.Remove)
			}
		})
	}
}

func TestConfigurationIsCheckedBeyondItsSchema(t *testing.T) {
	home := map[string]any{"home": "/made-up"}
	adaptertest.Validate(t, New(), []adaptertest.Configuration{
		{Name: "a home", Account: home, Want: "-"},
		{Name: "a credential", From: sdk.Credential{Value: "x"}, Want: "-"},
		{Name: "a key in a home", Account: map[string]any{"home": "/made-up", "api_key": true}, Want: "-"},
		{Name: "loopback", Provider: map[string]any{"upstream": "http://127.0.0.1:1", "backend": "http://[::1]:1"}, Account: home, Want: "-"},
		{Name: "an open upstream", Provider: map[string]any{"upstream": "http://example.com"}, Account: home, Want: "upstream"},
		{Name: "an open backend", Provider: map[string]any{"backend": "http://example.com"}, Account: home, Want: "backend"},
		{Name: "an open API upstream", Provider: map[string]any{"api_upstream": "ftp://example.com"}, Account: home, Want: "api_upstream"},
		{Name: "no login", Want: ""},
		{Name: "two logins", Account: home, From: sdk.Credential{Value: "x"}, Want: "home"},
	})
}

func TestOneLoginIsNotTwoAccounts(t *testing.T) { adaptertest.RefuseTwin(t, New()) }
