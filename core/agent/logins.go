package agent

import (
	"context"
	"time"

	"github.com/noria-dev/noria/core/quota"
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
		a.renewLogin(ctx, view.ID)
	}
}

// renewLogin drops the account's lease and asks for one. That its generation changed clears what blocks the account.
func (a *Agent) renewLogin(ctx context.Context, id quota.AccountID) {
	client, err := a.host.Client(id.Provider)
	if err != nil {
		return
	}
	client.DropLease(id.Name)
	if _, err := client.Lease(ctx, id.Name); err != nil {
		a.log.Debug("no lease", "account", id, "error", err)
	}
}
