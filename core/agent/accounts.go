package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// declared are the windows that an adapter says an account has.
type declared struct {
	windows   []quota.Declaration
	unmetered bool
}

// applyAccounts tells state of all accounts in configuration order, with the windows that their adapters declared so far.
func (a *Agent) applyAccounts(setup *Setup) error {
	var accounts []state.AccountConfig
	for _, provider := range setup.Config.Providers {
		for _, account := range provider.Accounts {
			id := quota.AccountID{Provider: provider.Name, Name: account.Name}
			clocks, lag := a.adapters.declaredFor(id)
			accounts = append(accounts, state.AccountConfig{
				ID: id, Enabled: account.Enabled, Models: account.Models,
				AllowOverage: account.Overage == config.OverageAllow,
				Windows:      clocks.windows, Unmetered: clocks.unmetered, UsageLag: lag,
			})
		}
	}
	if err := a.store.ApplyAccounts(accounts, a.clock.Now()); err != nil {
		return fmt.Errorf("apply accounts: %w", err)
	}
	return nil
}

// setWindows remembers what a profile declares for its accounts.
func (a *adapters) setWindows(provider string, profile *providerv1.Profile) {
	clocks := map[string]declared{}
	for _, account := range profile.GetAccounts() {
		d := declared{unmetered: account.GetUnmetered()}
		for _, w := range account.GetWindows() {
			d.windows = append(d.windows, quota.Declaration{
				ID: w.GetWindowId(), Kind: windowKind(w.GetKind()), Models: w.GetModels(), Label: w.GetLabel(),
				Length: time.Duration(w.GetLengthSeconds()) * time.Second,
			})
		}
		clocks[account.GetAccount()] = d
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

// windowKind gives the protocol's word without its prefix, which is the word of package quota.
func windowKind(kind providerv1.WindowKind) quota.Kind {
	return quota.Kind(strings.ToLower(strings.TrimPrefix(kind.String(), "WINDOW_KIND_")))
}
