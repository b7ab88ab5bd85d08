package agent

import (
	"time"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/plugin"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// hooks take what adapters report into state.
func (a *Agent) hooks() plugin.Hooks {
	return plugin.Hooks{
		OnWindows: func(report plugin.WindowReport) {
			if err := a.store.Observe(report.Account, report.Readings, report.SentAt, a.clock.Now()); err != nil {
				a.log.Warn("windows were not taken", "account", report.Account, "error", err)
			}
		},
		OnAuthState: func(account quota.AccountID, login providerv1.AuthState, _ time.Time) {
			a.probes.setLogin(account, loginWord(login))
		},
		OnProbe: func(report plugin.ProbeReport) { a.probes.setFailure(report.Account, report.Err) },
		OnGeneration: func(account quota.AccountID, _, after string) {
			if _, err := a.store.ClearAuth(account, after, a.clock.Now()); err != nil {
				a.log.Warn("a new login was not noted", "account", account, "error", err)
			}
		},
		OnLateLease: func(account quota.AccountID) { a.store.CredentialCame(account) },
		OnProfile:   a.takeProfile,
		OnState:     a.adapterChanged,
	}
}

// takeProfile makes a newly ready adapter's profile the one that requests are read by, and its windows the declared ones.
func (a *Agent) takeProfile(provider string, profile *providerv1.Profile) error {
	if err := a.adapters.SetProfile(provider, profile); err != nil {
		return err
	}
	a.adapters.setWindows(provider, profile)
	return a.declareAnew()
}

func (a *Agent) adapterChanged(info plugin.Info) {
	event := events.Event{
		At: a.clock.Now(), Component: events.ComponentPlugin, Operation: events.OperationAdapter,
		State: events.State(info.State), Provider: info.Provider,
	}
	if info.Failure != nil {
		event.Reason = events.Reason(info.Failure.Reason)
	}
	a.recorder.add(event)
	if info.State == plugin.StateReady {
		a.adapterArrived()
	}
}
