package claude

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

func TestOnlyASubscriptionIsEligible(t *testing.T) {
	type want struct {
		state    sdk.AuthState
		eligible bool
	}
	wanted := map[string]want{
		"creds": {sdk.AuthSignedIn, true}, "creds-acc": {sdk.AuthSignedIn, true}, "creds-acc-base": {sdk.AuthSignedIn, true},
		"creds-expired": {sdk.AuthSignedIn, true}, "creds-nosub": {sdk.AuthSignedIn, true}, "creds-pro": {sdk.AuthSignedIn, true},
		"apikey": {sdk.AuthSignedIn, false}, "bearer": {sdk.AuthSignedIn, false}, "bearer-base": {sdk.AuthSignedIn, false},
		"bedrock": {sdk.AuthSignedIn, false}, "vertex": {sdk.AuthSignedIn, false}, "helper": {sdk.AuthSignedIn, false},
		"oauthenv": {sdk.AuthSignedIn, false}, "settings-env": {sdk.AuthSignedIn, false},
		"creds-broken": {sdk.AuthSignedOut, false}, "creds-noinference": {sdk.AuthSignedOut, false}, "none": {sdk.AuthSignedOut, false},
	}
	for _, path := range adaptertest.Glob(t, "testdata/status/*.json") {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		_, situation, _ := strings.Cut(name, "-")
		expected, listed := wanted[situation]
		if !listed {
			t.Errorf("%s is not in the table", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			out, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readStatus(out, sdk.Account{Name: "work"})
			if err != nil {
				t.Fatal(err)
			}
			adaptertest.CheckSignIn(t, got, expected.state, expected.eligible)
			if strings.Contains(got.Reason, "Example Org") {
				t.Errorf("status %+v tells who the user is", got)
			}
		})
	}
}

func TestAnswersThatAreNoStatusAreErrors(t *testing.T) {
	for _, out := range []string{"", "Not logged in.", "[]", "{}", `{"loggedIn":"yes"}`, "null"} {
		if _, err := readStatus([]byte(out), sdk.Account{}); !errors.Is(err, errStatus) {
			t.Errorf("status of %q: %v", out, err)
		}
	}
}

func TestCheckAuthAsksTheOfficialClientOfTheAccount(t *testing.T) {
	client, log := fakeClient(t, "2.1.332-creds-acc", "")
	t.Setenv("CLAUDE_CODE_USE_BEDROCK", "1")
	got, err := at(now).CheckAuth(t.Context(), homeAccount(t, client, homeWith(t, loginFile(canary, now.Add(time.Hour)))))
	if err != nil || !got.Eligible || got.Method != "claude.ai" {
		t.Errorf("CheckAuth = %+v, %v", got, err)
	}
	if ran := runs(t, log); !slices.Equal(ran, []string{"auth status"}) {
		t.Errorf("the official client ran %q", ran)
	}
}

func TestCheckAuthWithoutAClientIsAnErrorAndNoState(t *testing.T) {
	account := homeAccount(t, filepath.Join(t.TempDir(), "none"), homeWith(t, ""))
	if got, err := at(now).CheckAuth(t.Context(), account); err == nil || got.State != 0 {
		t.Errorf("CheckAuth = %+v, %v", got, err)
	}
}

func TestCredentialsAreJudgedWithoutAClient(t *testing.T) {
	adaptertest.CheckAuth(t, at(now), []adaptertest.SignIn{
		{Name: "a subscription token", From: sdk.Credential{Value: canary}, State: sdk.AuthSignedIn, Eligible: true},
		{Name: "a key", Account: map[string]any{"api_key": true}, From: sdk.Credential{Value: "sk-ant-api03-x"}, State: sdk.AuthSignedIn},
		{Name: "a key that is not called one", From: sdk.Credential{Value: "sk-ant-api03-x"}, State: sdk.AuthSignedIn},
		{Name: "an empty source", From: sdk.Credential{Command: []string{"true"}}, State: sdk.AuthSignedOut},
	})
}

func TestACredentialThatCannotBeReadNowIsAnErrorAndNoState(t *testing.T) {
	account := adaptertest.NewAccount(t, nil, nil, sdk.Credential{Command: []string{"false"}})
	if got, err := at(now).CheckAuth(t.Context(), account); err == nil || got.State != 0 {
		t.Errorf("CheckAuth = %+v, %v", got, err)
	}
}

func TestLoginGoesIntoTheAccountsOwnHome(t *testing.T) {
	command, err := New().LoginCommand(t.Context(), homeAccount(t, "/opt/claude", "/made-up/home"))
	if err != nil || !slices.Equal(command.Argv, []string{"/opt/claude", "auth", "login"}) ||
		command.Env["CLAUDE_CONFIG_DIR"] != "/made-up/home" || !slices.Contains(command.Unset, "ANTHROPIC_API_KEY") {
		t.Errorf("LoginCommand = %+v, %v", command, err)
	}
	if _, err := New().LoginCommand(t.Context(), adaptertest.NewAccount(t, nil, nil, sdk.Credential{Value: canary})); err == nil {
		t.Error("a configured credential has a login command")
	}
}
