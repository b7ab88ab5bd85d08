package codex

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

func TestOnlyAChatGPTPlanIsEligible(t *testing.T) {
	login := loginFile(token(now.Add(time.Hour), "a"))
	cases := []struct {
		name, replies, login string
		account              map[string]any
		state                sdk.AuthState
		eligible             bool
	}{
		{"a plan", "c00", login, nil, sdk.AuthSignedIn, true},
		{"a key", "v02_apikey", keyFile, nil, sdk.AuthSignedIn, false},
		{"a key that is called one", "v02_apikey", keyFile, map[string]any{"api_key": true}, sdk.AuthSignedIn, false},
		{"nothing", "v01_notloggedin", "", nil, sdk.AuthSignedOut, false},
		{"a login that cannot be renewed any more", "e5_refresh_token_reused", login, nil, sdk.AuthExpired, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client, _ := fakeClient(t, c.replies, "")
			settings := map[string]any{"home": homeWith(t, c.login)}
			for name, value := range c.account {
				settings[name] = value
			}
			got, err := at(now).CheckAuth(t.Context(), adaptertest.NewAccount(t, map[string]any{"client": client}, settings, sdk.Credential{}))
			if err != nil {
				t.Fatal(err)
			}
			adaptertest.CheckSignIn(t, got, c.state, c.eligible)
		})
	}
}

func TestACheckThatFailsIsAnErrorAndNoState(t *testing.T) {
	client, _ := fakeClient(t, "v05_refused", "")
	got, err := at(now).CheckAuth(t.Context(), homeAccount(t, client, homeWith(t, "")))
	if err == nil || got.State != 0 || strings.Contains(err.Error(), "routing") {
		t.Errorf("CheckAuth = %+v, %v", got, err)
	}
}

func TestCredentialsAreJudgedWithoutAClient(t *testing.T) {
	adaptertest.CheckAuth(t, at(now), []adaptertest.SignIn{
		{Name: "a token", From: sdk.Credential{Value: token(now.Add(time.Hour), "a")}, State: sdk.AuthSignedIn, Eligible: true},
		{Name: "a token that is over", From: sdk.Credential{Value: token(now, "a")}, State: sdk.AuthExpired},
		{Name: "a key", Account: map[string]any{"api_key": true}, From: sdk.Credential{Value: "sk-x"}, State: sdk.AuthSignedIn},
		{Name: "a key that is not called one", From: sdk.Credential{Value: "sk-x"}, State: sdk.AuthSignedIn},
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
	home := filepath.Join(t.TempDir(), "home")
	command, err := New().LoginCommand(t.Context(), homeAccount(t, "/opt/codex", home))
	if err != nil || !slices.Equal(command.Argv, []string{"/opt/codex", "login"}) ||
		command.Env["CODEX_HOME"] != home || !slices.Contains(command.Unset, "OPENAI_API_KEY") {
		t.Errorf("LoginCommand = %+v, %v", command, err)
	}
	if _, err := New().LoginCommand(t.Context(), adaptertest.NewAccount(t, nil, nil, sdk.Credential{Value: "x"})); err == nil {
		t.Error("a configured credential has a login command")
	}
}

func TestLoginMakesAnAbsentHomeForItsUserAlone(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	for range 2 {
		if _, err := New().LoginCommand(t.Context(), homeAccount(t, "/opt/codex", home)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(home)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("the home is %v, %v", info, err)
	}
}

func TestTheClientIsSetToTheConfiguredVendor(t *testing.T) {
	client, log := fakeClient(t, "c00", "")
	account := adaptertest.NewAccount(t, map[string]any{"client": client, "backend": "http://127.0.0.1:9/backend-api", "upstream": "http://127.0.0.1:9/up"},
		map[string]any{"home": homeWith(t, "")}, sdk.Credential{})
	if _, err := at(now).CheckAuth(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	want := `start -c model_provider="openai" -c chatgpt_base_url="http://127.0.0.1:9/backend-api" ` +
		`-c openai_base_url="http://127.0.0.1:9/up" app-server --stdio  http://127.0.0.1:9/oauth/token`
	if got := calls(t, log, "start"); !slices.Equal(got, []string{want}) {
		t.Errorf("the official client was started %q", got)
	}
}

func TestAClientThatIsNotFoundIsNamedWithTheRemedy(t *testing.T) {
	_, err := at(now).ReadQuota(t.Context(), homeAccount(t, "no-such-codex", homeWith(t, "")))
	var refused *sdk.RefusalError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "no-such-codex is not found in the daemon's PATH") {
		t.Errorf("ReadQuota = %v", err)
	}
}
