package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/noria-dev/noria/core/plugin"
	"github.com/noria-dev/noria/core/proxy"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// adapters is the plugin host as the proxy wants it. It outlives reloads and restarts of the processes behind it.
type adapters struct {
	host *plugin.Host
	// probes take the reasons of refused leases.
	probes *probes

	mu       sync.RWMutex // guards all below, each by provider
	profiles map[string]*proxy.Profile
	windows  map[string]map[string]declared // then by account
	lags     map[string]time.Duration
}

func newAdapters(probes *probes) *adapters {
	return &adapters{
		probes: probes, profiles: map[string]*proxy.Profile{}, windows: map[string]map[string]declared{}, lags: map[string]time.Duration{},
	}
}

// SetProfile compiles the profile of a newly ready adapter and puts it in the place of the one before.
func (a *adapters) SetProfile(provider string, given *providerv1.Profile) error {
	compiled, err := proxy.CompileProfile(provider, given)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.profiles[provider] = compiled
	return nil
}

// Profile is the last profile received. It stays while the adapter is away.
func (a *adapters) Profile(provider string) (*proxy.Profile, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	profile, ok := a.profiles[provider]
	return profile, ok
}

func (a *adapters) Lease(ctx context.Context, account quota.AccountID) (wire.Lease, error) {
	client, err := a.host.Client(account.Provider)
	if err != nil {
		return wire.Lease{}, leaseError(account, err)
	}
	lease, err := client.Lease(ctx, account.Name)
	return lease, a.probes.noteLease(account, leaseError(account, err))
}

func (a *adapters) RefreshLease(ctx context.Context, account quota.AccountID, refused wire.Lease) (wire.Lease, error) {
	client, err := a.host.Client(account.Provider)
	if err != nil {
		return wire.Lease{}, leaseError(account, err)
	}
	lease, err := client.RefreshLease(ctx, account.Name, refused)
	return lease, a.probes.noteLease(account, leaseError(account, err))
}

// leaseError says in the proxy's words why there is no lease. Only an adapter that is away keeps every account from
// having one; what it failed to do for one account is that account's.
func leaseError(account quota.AccountID, err error) error {
	var refused *plugin.RefusedError
	var late *plugin.LateError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &proxy.LeaseRefusedError{Code: refused.Code, Reason: refused.Reason}
	case errors.As(err, &late):
		return temporary("the credential of %s did not come within %v: see what its command or its official client waits for", account, late.Waited)
	case errors.Is(err, plugin.ErrFailed), errors.Is(err, plugin.ErrBadAnswer):
		return temporary("the adapter failed to give the credential of %s: see the log of the daemon", account)
	case errors.Is(err, context.Canceled):
		return err
	default:
		return fmt.Errorf("%w: %w", proxy.ErrAdapterAway, err)
	}
}

func temporary(reason string, arguments ...any) error {
	return &proxy.LeaseRefusedError{Code: providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, Reason: fmt.Sprintf(reason, arguments...)}
}

func (a *adapters) Classify(ctx context.Context, account quota.AccountID, evidence *providerv1.ClassifyRequest, sentAt time.Time) (proxy.Verdict, error) {
	client, err := a.host.Client(account.Provider)
	if err != nil {
		return proxy.Verdict{}, err
	}
	verdict, err := client.Classify(ctx, account.Name, evidence, sentAt)
	if err != nil {
		return proxy.Verdict{}, err
	}
	return proxy.Verdict{Outcome: verdict.Outcome, Rejection: verdict.Rejection, Reason: verdict.Reason}, nil
}

func (a *adapters) Observe(account quota.AccountID, observation *providerv1.ObserveRequest, sentAt time.Time) {
	if client, err := a.host.Client(account.Provider); err == nil {
		client.Observe(account.Name, observation, sentAt)
	}
}

func (a *adapters) Unavailable(ctx context.Context, provider string, req *providerv1.UnavailableRequest) (*providerv1.Answer, error) {
	client, err := a.host.Client(provider)
	if err != nil {
		return nil, err
	}
	return client.Unavailable(ctx, req)
}

// setWindows remembers what a profile declares for its accounts.
func (a *adapters) setWindows(provider string, profile *providerv1.Profile) {
	clocks := map[string]declared{}
	for _, account := range profile.GetAccounts() {
		clocks[account.GetAccount()] = declared{windows: plugin.Declarations(account), unmetered: account.GetUnmetered()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.windows[provider] = clocks
	a.lags[provider] = time.Duration(profile.GetUsageLagMs()) * time.Millisecond
}

func (a *adapters) declaredFor(id quota.AccountID) (declared, time.Duration) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.windows[id.Provider][id.Name], a.lags[id.Provider]
}
