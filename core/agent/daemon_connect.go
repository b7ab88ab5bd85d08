package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/plugin"
	"github.com/noria-dev/noria/core/quota"
)

// Connect begins a login: what is known of the account's quota is void from now on.
func (d *daemon) Connect(ctx context.Context, id quota.AccountID) (api.LoginPlan, error) {
	if _, err := d.account(ctx, id); err != nil {
		return api.LoginPlan{}, err
	}
	client, err := d.host.Client(id.Provider)
	if err != nil {
		return api.LoginPlan{}, d.launchError(id.Provider, err)
	}
	command, err := client.LoginCommand(ctx, id.Name)
	if errors.Is(err, plugin.ErrNotOffered) {
		return api.LoginPlan{}, &api.Error{
			Code: api.CodeUnsupported, Message: "the adapter of " + id.Provider + " has no login command",
			Remedy: "log in as the provider says, then run \"noria accounts refresh " + id.String() + "\"",
		}
	}
	if err != nil {
		return api.LoginPlan{}, d.launchError(id.Provider, err)
	}
	if err := d.store.ForgetQuota(id, d.clock.Now()); err != nil {
		return api.LoginPlan{}, fmt.Errorf("forget quota of %s: %w", id, err)
	}
	client.DropLease(id.Name)
	d.recorder.add(events.Event{
		At: d.clock.Now(), Component: events.ComponentAPI, Operation: events.OperationConnect, Provider: id.Provider, Account: id.Name,
	})
	return api.LoginPlan{Argv: command.Argv, Environment: command.Environment, Unset: command.Unset}, nil
}

// Connected ends a login, whatever became of it: a new lease shows whether there is one, a probe what it has left. What
// was known before does not come back when that fails.
func (d *daemon) Connected(ctx context.Context, id quota.AccountID) (api.Account, error) {
	if _, err := d.account(ctx, id); err != nil {
		return api.Account{}, err
	}
	d.lookAgain(ctx, id)
	// The result comes through the hooks, a failure as ProbeError.
	_ = d.host.RefreshQuota(ctx, id)
	return d.account(ctx, id)
}
