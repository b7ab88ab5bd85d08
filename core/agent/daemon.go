package agent

import (
	"context"
	"maps"
	"os"
	"runtime"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// daemon is the agent as the control API serves it.
type daemon struct{ *Agent }

// Version says what runs.
func (d *daemon) Version() api.VersionInfo {
	return api.VersionInfo{
		Version: d.options.Version, API: api.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// Status is the daemon at a glance.
func (d *daemon) Status(ctx context.Context) (api.Status, error) {
	accounts, err := d.Accounts(ctx)
	if err != nil {
		return api.Status{}, err
	}
	stats := d.store.Stats()
	status := api.Status{
		Version: d.options.Version, State: api.StateStarting, PID: os.Getpid(), StartedAt: d.started,
		Config: d.setup.Load().Config.Path, Generation: d.generation.Load(), Listen: d.addresses(),
		Journal: d.journalState(), Sessions: stats.LiveSessions, Streams: stats.InFlight,
		Accounts: accounts, At: d.clock.Now(), StateFindings: d.stateFindings(),
	}
	if d.draining.Load() {
		status.State = api.StateDraining
	} else if ready, _ := d.ready(); ready {
		status.State = api.StateReady
	}
	adapterStates := d.adapterStates()
	unchecked := d.uncheckedProviders()
	for _, name := range d.providers() {
		provider := api.ProviderStatus{Name: name, Adapter: string(adapterStates[name]), Unchecked: unchecked[name]}
		for _, account := range accounts {
			if account.Provider == name && account.Usable {
				provider.Usable++
			}
		}
		if provider.Usable == 0 {
			forecast := withLostLogins(d.forecast(name, ""), name, accounts)
			provider.Forecast = &forecast
		}
		status.Providers = append(status.Providers, provider)
	}
	return status, nil
}

// uncheckedProviders are those whose adapter's executable is not checked (dev = true).
func (a *Agent) uncheckedProviders() map[string]bool {
	unchecked := map[string]bool{}
	for _, info := range a.host.List() {
		unchecked[info.Provider] = info.Dev
	}
	return unchecked
}

// withLostLogins counts accounts whose login cannot be had among the causes: state hears of that from requests only.
func withLostLogins(f placement.Forecast, provider string, accounts []api.Account) placement.Forecast {
	f.Causes = maps.Clone(f.Causes)
	for _, account := range accounts {
		if account.Provider != provider || account.AuthDetail == "" || len(account.Blockers) > 0 {
			continue
		}
		if f.Causes == nil {
			f.Causes = map[string]int{}
		}
		cause := quota.CauseAuth
		if account.Auth == loginUnavailable {
			cause = quota.CauseCredential
		}
		f.Causes[string(cause)]++
	}
	return f
}

func (d *daemon) stateFindings() []api.StateFinding {
	var found []api.StateFinding
	if d.journal != nil {
		for _, f := range d.journal.Findings() {
			found = append(found, api.StateFinding{Level: string(f.Level), What: f.What, Where: f.Where, Do: f.Do})
		}
	}
	if d.store.Stats().ClockHeld {
		found = append(found, api.StateFinding{
			Level: string(journal.Warning), Where: "wall clock", What: "it leapt out of reach and is not believed: meanwhile no quota resets",
			Do: "set the clock right; a time at which it runs on for ten minutes is believed",
		})
	}
	return found
}

func (d *daemon) journalState() string {
	switch {
	case d.options.Dev:
		return "none"
	case d.store.Degraded() != nil:
		return "degraded"
	}
	return "ok"
}

// Forecast for a new session of that provider and model.
func (d *daemon) Forecast(_ context.Context, provider, model string) (placement.Forecast, error) {
	if err := d.knownProvider(provider); err != nil {
		return placement.Forecast{}, err
	}
	return d.forecast(provider, model), nil
}

// forecast is zero when somebody can serve now.
func (d *daemon) forecast(provider, model string) placement.Forecast {
	return d.store.ExplainNew(provider, model, d.clock.Now()).Now.Forecast
}

func (d *daemon) knownProvider(provider string) error {
	if _, ok := d.setup.Load().Config.Provider(provider); !ok {
		err := api.Errorf(api.CodeNotFound, "no provider %q is configured", provider)
		err.Remedy = "\"noria accounts list\" shows those that are"
		return err
	}
	return nil
}

// Events after that sequence, oldest first.
func (d *daemon) Events(_ context.Context, after uint64, limit int) ([]api.Event, error) {
	return d.recorder.list.Recent(limit, func(e events.Event) bool { return e.Sequence > after }), nil
}

// WatchEvents sends events as they come until ctx ends or send fails.
func (d *daemon) WatchEvents(ctx context.Context, after uint64, send func(api.FollowedEvent) error) error {
	follower := d.recorder.list.Follow(after)
	for {
		event, missed, err := follower.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // the end of ctx is the ordinary end of a watch
		}
		if err := send(api.FollowedEvent{Event: event, Missed: missed}); err != nil {
			return err
		}
	}
}

// Reload reads the configuration again.
func (d *daemon) Reload(ctx context.Context) (api.ReloadResult, error) { return d.reload(ctx) }
