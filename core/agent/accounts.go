package agent

import (
	"fmt"
	"slices"
	"sync"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// declared are the windows that an adapter says an account has.
type declared struct {
	windows   []quota.Declaration
	unmetered bool
}

// toldAccounts are the accounts that state was told of last. Whoever tells it holds the lock meanwhile, so that nothing old comes
// after something newer.
type toldAccounts struct {
	mu   sync.Mutex // guards list, and orders what state is told
	list []state.AccountConfig
}

// tellAccounts tells state of the accounts of a configuration.
func (a *Agent) tellAccounts(setup *Setup) error {
	return a.changeAccounts(func([]state.AccountConfig) []state.AccountConfig { return accountsOf(setup.Config) })
}

// withdrawAccounts takes from state's accounts what a configuration that is about to be applied does not allow any more.
func (a *Agent) withdrawAccounts(setup *Setup) error {
	return a.changeAccounts(func(told []state.AccountConfig) []state.AccountConfig {
		return reduced(told, accountsOf(setup.Config))
	})
}

// declareAnew tells state of the same accounts with what adapters declare of them by now.
func (a *Agent) declareAnew() error {
	return a.changeAccounts(func(told []state.AccountConfig) []state.AccountConfig { return told })
}

func (a *Agent) changeAccounts(change func(told []state.AccountConfig) []state.AccountConfig) error {
	a.accounts.mu.Lock()
	defer a.accounts.mu.Unlock()
	accounts := slices.Clone(change(a.accounts.list))
	for n, account := range accounts {
		clocks, lag := a.adapters.declaredFor(account.ID)
		accounts[n].Windows, accounts[n].Unmetered, accounts[n].UsageLag = clocks.windows, clocks.unmetered, lag
	}
	if err := a.store.ApplyAccounts(accounts, a.clock.Now()); err != nil {
		return fmt.Errorf("apply accounts: %w", err)
	}
	a.accounts.list = accounts
	return nil
}

// accountsOf are the accounts in configuration order, without what adapters declare of them.
func accountsOf(cfg *config.Config) (accounts []state.AccountConfig) {
	for _, provider := range cfg.Providers {
		for _, account := range provider.Accounts {
			accounts = append(accounts, state.AccountConfig{
				ID:      quota.AccountID{Provider: provider.Name, Name: account.Name},
				Enabled: account.Enabled, Models: account.Models, AllowOverage: account.Overage == config.OverageAllow,
			})
		}
	}
	return accounts
}

// reduced are the accounts that both have, and what both allow of them.
func reduced(before, after []state.AccountConfig) (left []state.AccountConfig) {
	for _, account := range before {
		n := slices.IndexFunc(after, func(c state.AccountConfig) bool { return c.ID == account.ID })
		if n < 0 {
			continue
		}
		account.Enabled = account.Enabled && after[n].Enabled
		account.AllowOverage = account.AllowOverage && after[n].AllowOverage
		left = append(left, account)
	}
	return left
}
