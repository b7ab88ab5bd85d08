package agent

import (
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/plugin"
)

// present reads the state of things for a scrape of the metrics.
func (a *Agent) present() events.Present {
	stats := a.store.Stats()
	present := events.Present{
		StreamsOpen: map[string]int{}, Bindings: stats.Bindings, JournalDegraded: a.store.Degraded() != nil,
	}
	for _, view := range a.store.Accounts(a.clock.Now()) {
		account := events.PresentAccount{
			Provider: view.ID.Provider, Account: view.ID.Name, Enabled: view.Enabled, Reservations: view.InFlight,
			Blockers: map[string]int{},
		}
		present.StreamsOpen[view.ID.Provider] += view.InFlight
		for _, blocker := range view.Blockers {
			account.Blockers[string(blocker.Cause)]++
		}
		for _, window := range view.Windows {
			if window.UsedPercent != nil && !window.Estimated {
				account.Windows = append(account.Windows, events.PresentWindow{
					ID: window.ID, UsedPercent: *window.UsedPercent, ResetsAt: window.ResetsAt,
				})
			}
		}
		present.Accounts = append(present.Accounts, account)
	}
	for _, info := range a.host.List() {
		present.Adapters = append(present.Adapters, events.PresentAdapter{
			Name: info.Name, Ready: info.State == plugin.StateReady, Restarts: info.Restarts, Unchecked: info.Dev,
		})
	}
	for _, u := range a.setup.Load().Unusable {
		present.Adapters = append(present.Adapters, events.PresentAdapter{Name: u.Spec.Name})
	}
	return present
}
