package codex

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/noria-dev/noria/sdk"
)

// CheckAuth asks the official client about the account's login.
func (a *Adapter) CheckAuth(ctx context.Context, account sdk.Account) (sdk.AuthStatus, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.AuthStatus{}, err
	}
	if !account.Credential.IsZero() {
		return a.checkCredential(ctx, account, s)
	}
	info, err := ask(ctx, a, s, func(server *appServer) (accountInfo, error) { return server.account(false) })
	if err != nil {
		return sdk.AuthStatus{}, fmt.Errorf("check login: %w", withClass(err))
	}
	return statusOf(info, account, s), nil
}

func statusOf(info accountInfo, account sdk.Account, s settings) sdk.AuthStatus {
	switch {
	case info.kind == "chatgpt":
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "chatgpt", Eligible: true}
	case info.kind == "apiKey" && s.account.APIKey:
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "api_key", Reason: "a pay-as-you-go key is not used as a subscription"}
	case info.kind == "apiKey":
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "api_key", Reason: "not signed in with a ChatGPT plan: " + remedy(account)}
	}
	state := absentState(s)
	reason := "signed out: " + remedy(account)
	if state == sdk.AuthExpired {
		reason = "the login cannot be renewed any more: " + remedy(account)
	}
	return sdk.AuthStatus{State: state, Reason: reason}
}

// absentState tells a login that the client no longer counts as one from none at all.
func absentState(s settings) sdk.AuthState {
	if _, err := readLogin(string(s.account.Home), false); err == nil {
		return sdk.AuthExpired
	}
	return sdk.AuthSignedOut
}

// checkCredential judges a credential by the same rules as Lease.
func (a *Adapter) checkCredential(ctx context.Context, account sdk.Account, s settings) (sdk.AuthStatus, error) {
	_, err := a.credentialLogin(ctx, account, s)
	var refused *sdk.RefusalError
	switch {
	case errors.As(err, &refused) && refused.Code != sdk.RefusalTemporary:
		states := map[sdk.RefusalCode]sdk.AuthState{
			sdk.RefusalNotEligible: sdk.AuthSignedIn, sdk.RefusalExpired: sdk.AuthExpired, sdk.RefusalSignedOut: sdk.AuthSignedOut,
		}
		return sdk.AuthStatus{State: states[refused.Code], Method: "credential", Reason: refused.Reason}, nil
	case err != nil:
		return sdk.AuthStatus{}, fmt.Errorf("check login: %w", err)
	case s.account.APIKey:
		return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "api_key", Reason: "a pay-as-you-go key is not used as a subscription"}, nil
	}
	return sdk.AuthStatus{State: sdk.AuthSignedIn, Method: "access_token", Eligible: true}, nil
}

// LoginCommand is the official login into the account's own home, which is made if it is absent: the client wants it there.
func (*Adapter) LoginCommand(_ context.Context, account sdk.Account) (sdk.Command, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.Command{}, err
	}
	if s.account.Home == "" {
		return sdk.Command{}, sdk.Refuse(sdk.RefusalNotEligible, accountName(account)+" uses a configured credential: renew that at its source")
	}
	// Why it could not be made, the client says better: it looks at the home itself, in the user's terminal.
	_ = os.MkdirAll(string(s.account.Home), 0o700)
	return sdk.Command{
		Argv:  []string{s.provider.Client, "login"},
		Env:   map[string]string{"CODEX_HOME": string(s.account.Home)},
		Unset: diverting,
	}, nil
}
