package agent

import (
	"context"
	"time"
)

// watchLogins looks at the logins of accounts that were refused, until ctx ends. Such an account serves nothing, so
// nothing else would ask for its lease and notice that its user has signed in again.
func (a *Agent) watchLogins(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.setup.Load().Config.Telemetry.Refresh):
			a.lookForLogins(ctx)
		}
	}
}

// lookForLogins asks for a new lease of every account that is signed out. What it finds comes through the hooks.
func (a *Agent) lookForLogins(ctx context.Context) {
	for _, view := range a.store.Accounts(a.clock.Now()) {
		if !view.SignedOut || !view.Enabled {
			continue
		}
		client, err := a.host.Client(view.ID.Provider)
		if err != nil {
			continue
		}
		client.DropLease(view.ID.Name)
		if _, err := client.Lease(ctx, view.ID.Name); err != nil {
			a.log.Debug("still signed out", "account", view.ID)
		}
	}
}
