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

	mu       sync.RWMutex // guards all below, each by provider
	profiles map[string]*proxy.Profile
	windows  map[string]map[string]declared // then by account
	lags     map[string]time.Duration
}

func newAdapters() *adapters {
	return &adapters{
		profiles: map[string]*proxy.Profile{}, windows: map[string]map[string]declared{}, lags: map[string]time.Duration{},
	}
}

// SetProfile compiles the profile of a newly ready adapter and puts it in the place of the one before.
func (a *adapters) SetProfile(provider string, declared *providerv1.Profile) error {
	compiled, err := proxy.CompileProfile(provider, declared)
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
		return wire.Lease{}, leaseError(err)
	}
	lease, err := client.Lease(ctx, account.Name)
	return lease, leaseError(err)
}

func (a *adapters) RefreshLease(ctx context.Context, account quota.AccountID, refused wire.Lease) (wire.Lease, error) {
	client, err := a.host.Client(account.Provider)
	if err != nil {
		return wire.Lease{}, leaseError(err)
	}
	lease, err := client.RefreshLease(ctx, account.Name, refused)
	return lease, leaseError(err)
}

// leaseError says in the proxy's words why there is no lease.
func leaseError(err error) error {
	var refused *plugin.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &proxy.LeaseRefusedError{Code: refused.Code, Reason: refused.Reason}
	case errors.Is(err, context.Canceled):
		return err
	default:
		// An adapter that cannot give a usable answer is as good as none.
		return fmt.Errorf("%w: %w", proxy.ErrAdapterAway, err)
	}
}

func (a *adapters) Classify(ctx context.Context, account quota.AccountID, evidence *providerv1.ClassifyRequest) (proxy.Verdict, error) {
	client, err := a.host.Client(account.Provider)
	if err != nil {
		return proxy.Verdict{}, err
	}
	verdict, err := client.Classify(ctx, account.Name, evidence, evidence.GetObservedAt().AsTime())
	if err != nil {
		return proxy.Verdict{}, err
	}
	return proxy.Verdict(verdict), nil
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
