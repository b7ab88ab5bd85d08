package codex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/noria-dev/noria/sdk"
)

// Lease hands out the account's token: the configured credential, or the access token in its home. One that is nearly
// over, or that was refused upstream, is left to the official client to renew, once.
func (a *Adapter) Lease(ctx context.Context, account sdk.Account, req sdk.LeaseRequest) (sdk.Lease, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.Lease{}, err
	}
	l, err := a.currentLogin(ctx, account, s, req)
	if err != nil {
		return sdk.Lease{}, err
	}
	upstream := s.provider.Upstream
	if s.account.APIKey {
		upstream = s.provider.APIUpstream
	}
	base, err := sdk.ParseUpstream(upstream)
	if err != nil {
		return sdk.Lease{}, fmt.Errorf("read upstream: %w", err)
	}
	lease := sdk.Lease{
		BaseURL:    base,
		Set:        map[string]string{"authorization": "Bearer " + string(l.token)},
		Remove:     []string{"x-api-key", "x-openai-account-routing-override"},
		ValidUntil: l.validUntil(), Generation: l.version,
	}
	if l.accountID != "" {
		lease.Set["chatgpt-account-id"] = l.accountID
	} else {
		lease.Remove = append(lease.Remove, "chatgpt-account-id")
	}
	return lease, nil
}

// currentLogin finds the account's login, renewed if that is needed and possible. Its errors are refusals.
func (a *Adapter) currentLogin(ctx context.Context, account sdk.Account, s settings, req sdk.LeaseRequest) (login, error) {
	switch {
	case !account.Credential.IsZero():
		return a.credentialLogin(ctx, account, s)
	case s.account.Home == "":
		return login{}, sdk.Refuse(sdk.RefusalSignedOut, accountName(account)+" has neither a home nor a credential: set one in noria.hcl")
	}
	home := string(s.account.Home)
	l, err := readLogin(home, s.account.APIKey)
	if err != nil {
		return login{}, refuseUnread(account, err)
	}
	refused := req.Refresh && req.RefusedGeneration == l.version
	if !s.account.APIKey && (refused || l.renewable(a.now())) {
		if err := a.renew(ctx, s, l.version, refused); err != nil && l.expired(a.now()) {
			return login{}, sdk.Refuse(sdk.RefusalTemporary, "the official client is still renewing the login of "+accountName(account))
		}
		if l, err = readLogin(home, false); err != nil {
			return login{}, refuseUnread(account, err)
		}
	}
	if l.expired(a.now()) {
		return login{}, sdk.Refuse(sdk.RefusalExpired, "the login of "+accountName(account)+" has expired: "+remedy(account))
	}
	return l, nil
}

// renew lets the official client look at its login, which it does by renewing it when that is due; after a refusal it is
// told to. An error is that of ctx: the client goes on.
func (a *Adapter) renew(ctx context.Context, s settings, version string, force bool) error {
	home := string(s.account.Home)
	return a.clients.Do(ctx, home, func(ctx context.Context) {
		if l, err := readLogin(home, false); err == nil && l.version != version {
			// Somebody else renewed it while this waited for its turn.
			return
		}
		if !a.renewals.Due(home, version, a.now()) {
			return
		}
		// Whether it worked shows in the file.
		_ = converse(ctx, s, func(server *appServer) error {
			_, err := server.account(force)
			return err
		})
	})
}

// credentialLogin: a key is used only when it is called one, since it costs by use.
func (a *Adapter) credentialLogin(ctx context.Context, account sdk.Account, s settings) (login, error) {
	token, generation, err := a.credentials.Read(ctx, account.Credential)
	if err != nil {
		return login{}, sdk.Refuse(sdk.CredentialRefusal(err), "the credential of "+accountName(account)+" cannot be read: "+err.Error())
	}
	if strings.HasPrefix(string(token), "sk-") && !s.account.APIKey {
		return login{}, sdk.Refuse(sdk.RefusalNotEligible,
			"the credential of "+accountName(account)+" is a pay-as-you-go API key: set api_key = true to use it")
	}
	l := login{token: token}
	if !s.account.APIKey {
		l = tokenLogin(token)
	}
	l.version = generation
	if l.expired(a.now()) {
		return login{}, sdk.Refuse(sdk.RefusalExpired, "the credential of "+accountName(account)+" has expired: renew it at its source")
	}
	return l, nil
}

func refuseUnread(account sdk.Account, err error) error {
	switch {
	case errors.Is(err, errSignedOut):
		return sdk.Refuse(sdk.RefusalSignedOut, accountName(account)+" is signed out: "+remedy(account))
	case errors.Is(err, errOnlyKey):
		return sdk.Refuse(sdk.RefusalNotEligible,
			"the login of "+accountName(account)+" is a pay-as-you-go API key: set api_key = true to use it, or "+remedy(account))
	}
	return sdk.Refuse(sdk.RefusalTemporary, "the login of "+accountName(account)+" cannot be read: "+err.Error())
}

func accountName(account sdk.Account) string { return provider + "/" + account.Name }

func remedy(account sdk.Account) string { return "run noria connect " + accountName(account) }
