package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// clientPatience bounds a run of the official client.
const clientPatience = 10 * time.Second

// diverting are variables that make the client use something other than the login in its configuration directory.
var diverting = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_UNIX_SOCKET",
	"ANTHROPIC_PROFILE", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
	"CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "CLAUDE_CODE_API_BASE_URL", "CLAUDE_CODE_USE_GATEWAY",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE",
	"CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
}

// statusCommand asks the official client about its login. It reads a local file; the newer client renews a login that is
// over.
func statusCommand(s settings) sdk.Command {
	return sdk.Command{
		Argv: []string{s.provider.Client, "auth", "status"},
		Env: map[string]string{
			"CLAUDE_CONFIG_DIR":                        string(s.account.Home),
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			"DISABLE_AUTOUPDATER":                      "1",
			"DISABLE_TELEMETRY":                        "1",
		},
		Unset: diverting,
	}
}

// CheckAuth asks the official client. It says yes to logins that nobody has validated: only an answer of the upstream
// proves one.
func (a *Adapter) CheckAuth(ctx context.Context, account sdk.Account) (sdk.AuthStatus, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.AuthStatus{}, err
	}
	if !account.Credential.IsZero() {
		return a.checkCredential(ctx, account, s)
	}
	var out sdk.ClientOutput
	var failed error
	if err := a.clients.Do(ctx, string(s.account.Home), func(ctx context.Context) {
		out, failed = sdk.RunClient(ctx, statusCommand(s), clientPatience)
	}); err != nil {
		return sdk.AuthStatus{}, fmt.Errorf("check login: %w", err)
	}
	if failed != nil {
		return sdk.AuthStatus{}, fmt.Errorf("check login: %w", failed)
	}
	return readStatus(out.Stdout, account)
}

// checkCredential judges a credential by the same rules as Lease.
func (a *Adapter) checkCredential(ctx context.Context, account sdk.Account, s settings) (sdk.AuthStatus, error) {
	_, err := a.leaseOfCredential(ctx, account, s, s.provider.Upstream)
	var refused *sdk.RefusalError
	switch {
	case errors.As(err, &refused) && refused.Code == sdk.RefusalNotEligible:
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "credential", Reason: refused.Reason}, nil
	case errors.As(err, &refused) && refused.Code == sdk.RefusalSignedOut:
		return sdk.AuthStatus{State: sdk.AuthSignedOut, Method: "credential", Reason: refused.Reason}, nil
	case err != nil:
		return sdk.AuthStatus{}, fmt.Errorf("check login: %w", err)
	case s.account.APIKey:
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "api_key", Reason: "a pay-as-you-go key is not used as a subscription"}, nil
	}
	return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "oauth_token", Eligible: true}, nil
}

// errStatus is returned for an answer of the official client that is not what it prints.
var errStatus = errors.New("check login: the official client's answer cannot be read")

// readStatus reads the output of claude auth status. Nothing of it but these fields is looked at: it names the user.
func readStatus(out []byte, account sdk.Account) (sdk.AuthStatus, error) {
	var status struct {
		LoggedIn     *bool  `json:"loggedIn"`
		AuthMethod   string `json:"authMethod"`
		APIProvider  string `json:"apiProvider"`
		APIKeySource string `json:"apiKeySource"`
	}
	if json.Unmarshal(out, &status) != nil || status.LoggedIn == nil {
		return sdk.AuthStatus{}, errStatus
	}
	if !*status.LoggedIn {
		return sdk.AuthStatus{State: sdk.AuthSignedOut, Reason: "signed out: " + remedy(account)}, nil
	}
	auth := sdk.AuthStatus{State: sdk.AuthSignedIn, Method: knownMethod(status.AuthMethod)}
	switch {
	case status.APIProvider != "firstParty":
		auth.Reason = "the official client is set to another provider"
	case status.APIKeySource != "" || status.AuthMethod != "claude.ai":
		auth.Reason = "not signed in with a subscription: " + remedy(account)
	default:
		auth.Eligible = true
	}
	return auth, nil
}

// knownMethod passes on only words that the client is known to use.
func knownMethod(method string) string {
	switch method {
	case "claude.ai", "oauth_token", "api_key", "api_key_helper", "third_party":
		return method
	}
	return "unknown"
}

// LoginCommand is the official login into the account's own configuration directory.
func (*Adapter) LoginCommand(_ context.Context, account sdk.Account) (sdk.Command, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.Command{}, err
	}
	if s.account.Home == "" {
		return sdk.Command{}, sdk.Refuse(sdk.RefusalNotEligible, accountName(account)+" uses a configured credential: renew that at its source")
	}
	return sdk.Command{
		Argv:  []string{s.provider.Client, "auth", "login"},
		Env:   map[string]string{"CLAUDE_CONFIG_DIR": string(s.account.Home)},
		Unset: diverting,
	}, nil
}
