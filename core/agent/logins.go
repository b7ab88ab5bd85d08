package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/proxy"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// watchLogins looks at logins until ctx ends: at all of them when an adapter has become ready, so that a home that cannot be
// read is known before somebody needs it, and now and then at those that were refused. Such an account serves nothing, so
// nothing else would ask for its lease and notice that it is in order again.
func (a *Agent) watchLogins(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.arrived:
			a.lookAtLogins(ctx, func(state.AccountView) bool { return true })
		case <-time.After(a.setup.Load().Config.Telemetry.Refresh):
			a.lookAtLogins(ctx, a.refusedLogin)
		}
	}
}

// adapterArrived has watchLogins look at the logins of an adapter that is ready. It never waits.
func (a *Agent) adapterArrived() {
	select {
	case a.arrived <- struct{}{}:
	default: // it has yet to look, and will see this one as well
	}
}

func (a *Agent) refusedLogin(view state.AccountView) bool {
	return view.SignedOut || a.probes.of(view.ID).refusal != nil
}

// lookAtLogins looks at the logins of enabled accounts that are wanted, one after the other. One that a command prints is
// left alone unless the account is signed out: the command may ask its user something.
func (a *Agent) lookAtLogins(ctx context.Context, wanted func(state.AccountView) bool) {
	for _, view := range a.store.Accounts(a.clock.Now()) {
		if view.Enabled && wanted(view) && (view.SignedOut || !a.loginIsCommand(view.ID)) {
			a.lookAtLogin(ctx, view)
		}
	}
}

func (a *Agent) loginIsCommand(id quota.AccountID) bool {
	provider, _ := a.setup.Load().Config.Provider(id.Provider)
	for _, account := range provider.Config.GetAccounts() {
		if account.GetName() == id.Name {
			return account.GetCredential().GetCommand() != nil
		}
	}
	return false
}

// lookAtLogin asks for the account's lease, for a new one if it is signed out. That its generation changed clears what
// blocks the account; so does any lease where a lease was what failed.
func (a *Agent) lookAtLogin(ctx context.Context, view state.AccountView) {
	if view.SignedOut {
		a.dropLease(view.ID)
	}
	if _, err := a.adapters.Lease(ctx, view.ID); err != nil {
		a.log.Debug("no lease", "account", view.ID, "error", err)
		return
	}
	if !slices.ContainsFunc(view.Blockers, leftByLease) {
		return
	}
	if _, err := a.store.ClearAuth(view.ID, "", a.clock.Now()); err != nil {
		a.log.Warn("a login that can be read again was not noted", "account", view.ID, "error", err)
	}
}

// lookAgain looks at the account's login by a person's word, whatever was known of it.
func (a *Agent) lookAgain(ctx context.Context, id quota.AccountID) {
	view, err := a.store.AccountByID(id, a.clock.Now())
	if err != nil || !view.Enabled {
		return
	}
	a.dropLease(id)
	a.lookAtLogin(ctx, view)
}

func (a *Agent) dropLease(id quota.AccountID) {
	if client, err := a.host.Client(id.Provider); err == nil {
		client.DropLease(id.Name)
	}
}

// leftByLease reports whether a lease that was refused left the blocker, and not the upstream.
func leftByLease(b quota.Blocker) bool {
	return b.Cause == quota.CauseAuth && (b.Reason == loginSignedOut || b.Reason == loginExpired || b.Reason == loginNotEligible)
}

// refusal is why an account has no lease to give.
type refusal struct{ login, reason string }

// noteLease keeps why there was no lease, or that there was one, and returns err. What says nothing of the account changes
// nothing. It is on the path of requests: while no account is refused, a lease costs it one atomic read.
func (p *probes) noteLease(account quota.AccountID, err error) error {
	var refused *proxy.LeaseRefusedError
	switch {
	case errors.As(err, &refused):
		p.setRefusal(account, &refusal{loginOf(refused.Code), refused.Reason})
	case err == nil && p.refused.Load() > 0:
		p.setRefusal(account, nil)
	}
	return err
}

func loginOf(code providerv1.RefusalCode) string {
	switch code {
	case providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT:
		return loginSignedOut
	case providerv1.RefusalCode_REFUSAL_CODE_EXPIRED:
		return loginExpired
	case providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE:
		return loginNotEligible
	}
	return loginUnavailable
}

func (p *probes) setRefusal(account quota.AccountID, why *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.last[account]
	switch {
	case known.refusal == nil && why != nil:
		p.refused.Add(1)
	case known.refusal != nil && why == nil:
		p.refused.Add(-1)
	}
	known.refusal = why
	p.last[account] = known
}
