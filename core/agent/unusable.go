package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
)

// A plugin that cannot be used is tried again soon, then ever later: its executable may have been on a disk that was not there
// yet, or the machine too busy to run it in time.
const (
	unusableFirst = 15 * time.Second
	unusableMost  = 10 * time.Minute
)

// pluginInfos are the adapters and the plugins that cannot be used, by name.
func (a *Agent) pluginInfos() []plugin.Info {
	infos := a.host.List()
	setup := a.setup.Load()
	for _, u := range setup.Unusable {
		infos = append(infos, plugin.Info{
			Name: u.Spec.Name, Provider: u.Spec.Provider, State: plugin.StateFailed, Failure: u.Failure,
			Accounts: setup.File.AccountsEnabled(u.Spec.Provider), SHA256: u.Failure.SHA256, Digest: u.Failure.Digest, Source: a.host.Source(u.Spec),
			Path: u.Spec.Path, Dev: u.Spec.Dev,
		})
	}
	slices.SortFunc(infos, func(x, y plugin.Info) int { return strings.Compare(x.Name, y.Name) })
	return infos
}

// adapterStates are the states of adapters by provider.
func (a *Agent) adapterStates() map[string]plugin.State {
	states := map[string]plugin.State{}
	for _, info := range a.host.List() {
		states[info.Provider] = info.State
	}
	for _, u := range a.setup.Load().Unusable {
		states[u.Spec.Provider] = plugin.StateFailed
	}
	return states
}

// logUnusable tells of plugins that cannot be used, with the lines that name them.
func (a *Agent) logUnusable(setup *Setup) {
	for _, u := range setup.Unusable {
		a.log.Error("plugin cannot be used; the others serve without it", "plugin", u.Spec.Name, "provider", u.Spec.Provider,
			"finding", inFull(config.Diagnostics{u.Finding}))
	}
}

// watchUnusable tries plugins that cannot be used again, until ctx ends.
func (a *Agent) watchUnusable(ctx context.Context) {
	for wait := unusableFirst; ; wait = min(2*wait, unusableMost) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			a.retryUnusable(ctx)
		}
	}
}

// retryUnusable takes up plugins that can be used by now, with the configuration as it was read last.
func (a *Agent) retryUnusable(ctx context.Context) {
	if a.reloading.take(ctx) != nil {
		return
	}
	defer a.reloading.give()
	before := a.setup.Load()
	if len(before.Unusable) == 0 {
		return
	}
	catalog, err := plugin.NewCatalog(a.catalogOptions(&before.Config.Host, before.Config.State.Dir))
	if err != nil {
		a.log.Warn("plugins that cannot be used were not tried again", "error", err)
		return
	}
	setup, _, err := setupOf(ctx, before.File, nil, catalog)
	switch {
	case err != nil:
		a.log.Warn("plugins that cannot be used were not tried again", "error", err)
	case !improves(setup, before):
	default:
		a.log.Info("plugins can be used again", "plugins", len(before.Unusable)-len(setup.Unusable))
		setup.Config = config.InForce(before.Config, setup.Config)
		notReady, err := a.apply(setup, anew{})
		for _, d := range notReady {
			a.log.Warn("adapter is not ready", "finding", d.String())
		}
		if err != nil {
			a.log.Error("configuration was not applied", "error", err)
		}
	}
}

// improves reports whether fewer plugins are unusable than before, and none that runs.
func improves(setup, before *Setup) bool {
	for _, u := range setup.Unusable {
		if before.unusable(u.Spec.Name) == nil {
			return false
		}
	}
	return len(setup.Unusable) < len(before.Unusable)
}
