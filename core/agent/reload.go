package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/plugin"
)

// reload reads the configuration again, asks the plugins about it, and applies the difference. If anything is wrong the
// last good configuration stays.
func (a *Agent) reload(ctx context.Context) (api.ReloadResult, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	setup, diags, err := a.reconfigure(ctx)
	if found, ok := config.AsDiagnostics(err); ok {
		return a.refuseReload(found), nil
	}
	if err != nil {
		return api.ReloadResult{}, err
	}
	for _, spec := range setup.Specs {
		found, err := a.host.Validate(ctx, spec)
		if err != nil {
			return api.ReloadResult{}, fmt.Errorf("ask plugin %s about the configuration: %w", spec.Name, err)
		}
		diags = append(diags, placed(setup.File, spec.Provider, found)...)
	}
	if diags.HasErrors() {
		return a.refuseReload(diags), nil
	}
	before := a.setup.Load()
	changes := config.Diff(before.Config, setup.Config)
	for _, result := range a.host.Apply(ctx, setup.Specs) {
		var failure *plugin.Failure
		switch {
		case result.Err == nil:
		case errors.As(result.Err, &failure):
			diags = append(diags, setup.File.At(setup.providerOf(result.Name), "", "", config.Diagnostic{
				Severity: config.SeverityWarning,
				Summary:  fmt.Sprintf("Plugin %q is not ready with the new configuration", result.Name),
				Detail:   failure.Error(),
			}))
		default:
			return api.ReloadResult{}, fmt.Errorf("apply configuration: %w", result.Err)
		}
	}
	a.setup.Store(setup)
	if err := a.applyAccounts(setup); err != nil {
		return api.ReloadResult{}, err
	}
	a.store.ApplySettings(settingsOf(setup.Config))
	a.proxy.SetLimits(proxyLimits(setup.Config.Limits))
	generation := a.generation.Add(1)
	a.recorder.add(events.Event{At: a.clock.Now(), Component: events.ComponentAgent, Operation: events.OperationReload})
	a.log.Info("configuration applied", "generation", generation, "changes", len(changes))
	return api.ReloadResult{Applied: true, Generation: generation, Changes: changes, Diagnostics: diags}, nil
}

func (a *Agent) refuseReload(diags config.Diagnostics) api.ReloadResult {
	return api.ReloadResult{Generation: a.generation.Load(), Diagnostics: diags}
}

// placed puts a plugin's findings at the lines that they are about.
func placed(file *config.File, provider string, found []plugin.Diagnostic) config.Diagnostics {
	var diags config.Diagnostics
	for _, d := range found {
		severity := config.SeverityError
		if d.Warning {
			severity = config.SeverityWarning
		}
		diags = append(diags, file.At(provider, d.Account, d.Attribute, config.Diagnostic{
			Severity: severity, Summary: d.Summary, Detail: d.Detail,
		}))
	}
	return diags
}
