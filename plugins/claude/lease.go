package claude

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/noria-dev/noria/sdk"
)

// betaOAuth must be among the beta flags of a request with a subscription's token. A client with an API key of its own
// does not send it.
const betaOAuth = "oauth-2025-04-20"

// Lease hands out the account's token: the configured credential, or the access token in its home. One that is over, or
// that was refused upstream, is left to the official client to renew, once.
func (a *Adapter) Lease(ctx context.Context, account sdk.Account, req sdk.LeaseRequest) (sdk.Lease, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.Lease{}, err
	}
	base, err := sdk.ParseUpstream(s.provider.Upstream)
	if err != nil {
		return sdk.Lease{}, fmt.Errorf("read upstream: %w", err)
	}
	if !account.Credential.IsZero() {
		return a.leaseOfCredential(ctx, account, s, base)
	}
	if s.account.Home == "" {
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalSignedOut, accountName(account)+" has neither a home nor a credential: set one in noria.hcl")
	}
	l, err := a.currentLogin(ctx, account, s, req)
	if err != nil {
		return sdk.Lease{}, err
	}
	lease := subscriptionLease(base, l.token)
	lease.ValidUntil, lease.Generation = l.validUntil(), l.version
	return lease, nil
}

// currentLogin reads the account's login, renewed if that is needed and possible. Its errors are refusals.
func (a *Adapter) currentLogin(ctx context.Context, account sdk.Account, s settings, req sdk.LeaseRequest) (login, error) {
	home := string(s.account.Home)
	l, err := readLogin(home)
	if err != nil {
		return login{}, refuseUnread(account, err)
	}
	if l.expired(a.now()) || (req.Refresh && req.RefusedGeneration == l.version) {
		if err := a.renew(ctx, s, l.version); err != nil {
			return login{}, sdk.Refuse(sdk.RefusalTemporary, "the official client is still renewing the login of "+accountName(account))
		}
		if l, err = readLogin(home); err != nil {
			return login{}, refuseUnread(account, err)
		}
	}
	switch {
	case l.expired(a.now()):
		return login{}, sdk.Refuse(sdk.RefusalExpired, "the login of "+accountName(account)+" has expired: "+remedy(account))
	case !l.inference:
		return login{}, sdk.Refuse(sdk.RefusalNotEligible, "the login of "+accountName(account)+" may not be used for model requests: "+remedy(account))
	}
	return l, nil
}

// renew lets the official client look at its login, which the newer ones do by renewing it when it is over. An error is
// that of ctx: the client goes on.
func (a *Adapter) renew(ctx context.Context, s settings, version string) error {
	home := string(s.account.Home)
	return a.clients.Do(ctx, home, func(ctx context.Context) {
		if l, err := readLogin(home); err == nil && l.version != version {
			// Somebody else renewed it while this waited for its turn.
			return
		}
		if !a.renewals.Due(home, version, a.now()) {
			return
		}
		// Whether it worked shows in the file.
		_, _ = sdk.RunClient(ctx, statusCommand(s), clientPatience)
	})
}

// leaseOfCredential: a subscription's long-lived token and an API key travel in different headers, and a key is used only
// when it is called one, since it costs by use.
func (a *Adapter) leaseOfCredential(ctx context.Context, account sdk.Account, s settings, base string) (sdk.Lease, error) {
	token, generation, err := a.credentials.Read(ctx, account.Credential)
	if err != nil {
		return sdk.Lease{}, sdk.Refuse(sdk.CredentialRefusal(err), "the credential of "+accountName(account)+" cannot be read: "+err.Error())
	}
	isKey := strings.HasPrefix(string(token), "sk-ant-api")
	isSubscription := strings.HasPrefix(string(token), "sk-ant-oat")
	switch {
	case isKey && !s.account.APIKey:
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalNotEligible,
			"the credential of "+accountName(account)+" is a pay-as-you-go API key: set api_key = true to use it")
	case isSubscription && s.account.APIKey:
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalNotEligible,
			"the credential of "+accountName(account)+" is a subscription token: remove api_key")
	}
	lease := subscriptionLease(base, token)
	if s.account.APIKey {
		lease = keyLease(base, token)
	}
	lease.Generation = generation
	return lease, nil
}

func subscriptionLease(base string, token sdk.Secret) sdk.Lease {
	return sdk.Lease{
		BaseURL: base,
		Set:     map[string]string{"authorization": "Bearer " + string(token)},
		Remove:  []string{"x-api-key"},
		Extend:  map[string]string{"anthropic-beta": betaOAuth},
	}
}

func keyLease(base string, key sdk.Secret) sdk.Lease {
	return sdk.Lease{
		BaseURL: base,
		Set:     map[string]string{"x-api-key": string(key)},
		Remove:  []string{"authorization"},
	}
}

func refuseUnread(account sdk.Account, err error) error {
	if errors.Is(err, errSignedOut) {
		return sdk.Refuse(sdk.RefusalSignedOut, accountName(account)+" is signed out: "+remedy(account))
	}
	return sdk.Refuse(sdk.RefusalTemporary, "the login of "+accountName(account)+" cannot be read: "+err.Error())
}

func accountName(account sdk.Account) string { return provider + "/" + account.Name }

func remedy(account sdk.Account) string { return "run noria connect " + accountName(account) }
