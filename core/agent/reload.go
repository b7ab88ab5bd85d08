package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/plugin"
)

// reload reads the configuration again, asks the plugins about it, and applies the difference. If anything is wrong the
// last good configuration stays.
func (a *Agent) reload(ctx context.Context) (api.ReloadResult, error) {
	if err := a.reloading.take(ctx); err != nil {
		return api.ReloadResult{}, fmt.Errorf("wait for another reload: %w", err)
	}
	defer a.reloading.give()
	setup, diags, err := a.reconfigure(ctx)
	if found, ok := config.AsDiagnostics(err); ok {
		return a.refuseReload(found), nil
	}
	if err != nil {
		return api.ReloadResult{}, err
	}
	diags = append(diags, a.askPlugins(ctx, setup)...)
	if diags.HasErrors() {
		return a.refuseReload(diags), nil
	}
	before := a.setup.Load()
	opened, found := a.openAnew(ctx, before, setup)
	if found != nil {
		return a.refuseReload(append(diags, found...)), nil
	}
	changes := config.Diff(before.Config, setup.Config)
	setup.Config = config.InForce(before.Config, setup.Config)
	notReady, err := a.apply(setup, opened)
	if err != nil {
		return api.ReloadResult{}, err
	}
	diags = append(diags, notReady...)
	generation := a.generation.Add(1)
	a.recorder.add(events.Event{At: a.clock.Now(), Component: events.ComponentAgent, Operation: events.OperationReload})
	a.log.Info("configuration applied", "generation", generation, "changes", len(changes))
	return api.ReloadResult{Applied: true, Generation: generation, Changes: changes, Diagnostics: diags}, nil
}

// askPlugins gives what the plugins find wrong.
func (a *Agent) askPlugins(ctx context.Context, setup *Setup) (diags config.Diagnostics) {
	for _, spec := range setup.Specs {
		found, err := a.host.Validate(ctx, spec)
		if err != nil {
			diags = append(diags, unusablePlugin(setup.File, spec, err))
			continue
		}
		diags = append(diags, placed(setup.File, spec.Provider, found)...)
	}
	return diags
}

// anew is what a reload opens before it changes anything.
type anew struct {
	certificate *tls.Certificate // nil without TLS
	// metrics is the listener for them when replaceMetrics; nil: none.
	metrics        net.Listener
	replaceMetrics bool
}

// openAnew opens what may yet keep a configuration from being applied.
func (a *Agent) openAnew(ctx context.Context, before, after *Setup) (opened anew, found config.Diagnostics) {
	fail := func(block, attribute, summary string, err error) (anew, config.Diagnostics) {
		d := config.Diagnostic{Severity: config.SeverityError, Summary: summary, Detail: err.Error() + "."}
		return anew{}, config.Diagnostics{after.File.AtBlock(block, attribute, d)}
	}
	var err error
	if opened.certificate, err = loadCertificate(after.Config.Listen); err != nil {
		return fail("listen", "tls_cert", "Unusable key pair", err)
	}
	address := after.Config.Metrics.Address
	if opened.replaceMetrics = address != before.Config.Metrics.Address; opened.replaceMetrics && address != "" {
		if opened.metrics, err = listenOne(ctx, "metrics.address", address); err != nil {
			return fail("metrics", "address", "Metrics cannot be served", err)
		}
	}
	return opened, nil
}

// apply makes the configuration the one in force, also when whoever asked for it leaves meanwhile. What may not be used any more
// is not used from the beginning; what is new is used when its adapter knows of it. The diagnostics are warnings.
func (a *Agent) apply(setup *Setup, opened anew) (config.Diagnostics, error) {
	if err := a.withdrawAccounts(setup); err != nil {
		closeAll([]net.Listener{opened.metrics})
		return nil, err
	}
	notReady := a.applySpecs(a.serving, setup)
	return notReady, a.adopt(setup, opened)
}

// applySpecs makes the running adapters those of the configuration, and warns of those that are not ready with it: they are
// supervised further, or go on as before.
func (a *Agent) applySpecs(ctx context.Context, setup *Setup) (diags config.Diagnostics) {
	for _, result := range a.host.Apply(ctx, setup.Specs) {
		if result.Err != nil {
			diags = append(diags, setup.File.At(setup.providerOf(result.Name), "", "", config.Diagnostic{
				Severity: config.SeverityWarning,
				Summary:  fmt.Sprintf("Plugin %q is not ready with the new configuration", result.Name),
				Detail:   result.Err.Error() + ".",
			}))
		}
	}
	return diags
}

// adopt makes the configuration the one in force.
func (a *Agent) adopt(setup *Setup, opened anew) error {
	a.setup.Store(setup)
	cfg := setup.Config
	a.log.SetLevel(logLevel(cfg.Log))
	if opened.certificate != nil {
		a.certificate.Store(opened.certificate)
	}
	if opened.replaceMetrics {
		a.replaceMetrics(opened.metrics)
	}
	a.store.ApplySettings(settingsOf(cfg))
	a.proxy.SetLimits(proxyLimits(cfg.Limits))
	a.host.SetRefresh(cfg.Telemetry.Refresh)
	// Adapters arrived before state knew of the accounts that are new.
	defer a.adapterArrived()
	return a.tellAccounts(setup)
}

// replaceMetrics has the metrics served on the listener (nil: on none). The caller has the turn of reloads.
func (a *Agent) replaceMetrics(listener net.Listener) {
	select {
	case untaken := <-a.nextMetrics:
		closeAll([]net.Listener{untaken})
	default:
	}
	a.nextMetrics <- listener
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
