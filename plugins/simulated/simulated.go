// Package simulated is the adapter of a provider that does not exist, for noria serve -dev, for tests and for
// demonstrations. The provider's upstream is a server on loopback inside the adapter process: its accounts have a
// five-hour and a weekly window that fill with use, reject when they are full and reset, all of it faster than life by
// the speed setting, and the same for the same seed.
//
// It takes the way in that every adapter takes: the daemon knows nothing of it but its profile.
package simulated

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// leaseTime is short because a new adapter process has a new upstream at another address.
const leaseTime = 20 * time.Second

// New returns the adapter. Its upstream starts with the first configuration and stops when it is drained.
func New() sdk.Adapter { return newAdapter(time.Now) }

func newAdapter(now func() time.Time) *adapter {
	return &adapter{now: now, meters: map[string]*meter{}}
}

type adapter struct {
	now func() time.Time

	mu       sync.Mutex // guards all below
	upstream *upstream
	meters   map[string]*meter
}

// Describe says what the adapter is.
func (a *adapter) Describe() sdk.Descriptor {
	return sdk.Descriptor{
		Name:    "simulated",
		Version: "0.1.0",
		Config:  (*providerBlock)(nil),
		Account: (*accountBlock)(nil),
		Profile: profile(),
	}
}

// Validate checks what the schema cannot.
func (a *adapter) Validate(_ context.Context, config sdk.Config) []sdk.Diagnostic {
	var block providerBlock
	if err := config.Decode(&block); err != nil {
		return nil // the schema's own diagnostics say it
	}
	found := block.problems()
	for _, account := range config.Accounts {
		var block accountBlock
		if err := account.Decode(&block); err != nil {
			continue
		}
		for _, diagnostic := range block.problems() {
			diagnostic.Account = account.Name
			found = append(found, diagnostic)
		}
	}
	return found
}

// Configure starts the upstream if there is none. Accounts that stay keep their windows.
func (a *adapter) Configure(_ context.Context, config sdk.Config) error {
	var provider providerBlock
	if err := config.Decode(&provider); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	meters := map[string]*meter{}
	for _, account := range config.Accounts {
		if kept, ok := a.meters[account.Name]; ok && kept.provider == provider {
			meters[account.Name] = kept
			continue
		}
		var block accountBlock
		if err := account.Decode(&block); err != nil {
			return fmt.Errorf("account %s: %w", account.Name, err)
		}
		meters[account.Name] = newMeter(account.Name, provider, block, now)
	}
	if a.upstream == nil {
		started, err := startUpstream(a.now)
		if err != nil {
			return err
		}
		a.upstream = started
	}
	a.meters = meters
	a.upstream.serve(slices.Collect(maps.Values(meters)), provider.Latency)
	return nil
}

// Windows tells the windows of an account, whose lengths depend on the speed.
func (a *adapter) Windows(account sdk.Account) (windows []sdk.WindowDeclaration, unmetered bool) {
	var provider providerBlock
	if err := account.DecodeProvider(&provider); err != nil {
		return nil, false
	}
	return provider.windows(), false
}

// Lease hands out the account's token at the upstream.
func (a *adapter) Lease(_ context.Context, account sdk.Account, _ sdk.LeaseRequest) (sdk.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.meters[account.Name]
	if !ok || a.upstream == nil {
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalTemporary, "the account is not configured")
	}
	return sdk.Lease{
		BaseURL:    a.upstream.baseURL,
		Set:        map[string]string{"Authorization": "Bearer " + m.token},
		ValidUntil: a.now().Add(leaseTime),
		Generation: m.generation,
	}, nil
}

// ReadQuota reads the account's windows at the upstream.
func (a *adapter) ReadQuota(_ context.Context, account sdk.Account) (sdk.QuotaReading, error) {
	a.mu.Lock()
	m, ok := a.meters[account.Name]
	a.mu.Unlock()
	if !ok {
		return sdk.QuotaReading{}, fmt.Errorf("account %s is not configured", account.Name)
	}
	now := a.now()
	var windows []sdk.Window
	for _, clock := range m.read(now) {
		windows = append(windows, clock.window(now))
	}
	return sdk.QuotaReading{Windows: windows, Auth: sdk.AuthSignedIn}, nil
}

// Drain stops the upstream when its answers have ended.
func (a *adapter) Drain(ctx context.Context) error {
	a.mu.Lock()
	running := a.upstream
	a.upstream = nil
	a.mu.Unlock()
	if running == nil {
		return nil
	}
	return running.stop(ctx)
}
