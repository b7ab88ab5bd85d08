package agent

import (
	"context"
	"errors"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/plugin"
)

// Plugins lists the adapter processes by name.
func (d *daemon) Plugins(context.Context) ([]api.Plugin, error) {
	infos := d.pluginInfos()
	plugins := make([]api.Plugin, 0, len(infos))
	for _, info := range infos {
		plugins = append(plugins, pluginOf(info))
	}
	return plugins, nil
}

// Plugin is one adapter process with what it offers.
func (d *daemon) Plugin(ctx context.Context, name string) (api.PluginDetail, error) {
	info, spec, err := d.pluginNamed(name)
	if err != nil {
		return api.PluginDetail{}, err
	}
	detail := api.PluginDetail{
		Plugin: pluginOf(info), Services: info.Services, Environment: info.Environment,
		LastStderr: info.Stderr, DroppedLogLines: info.DroppedLines,
	}
	for _, account := range spec.Config.GetAccounts() {
		detail.AccountNames = append(detail.AccountNames, account.GetName())
	}
	// The schema is shown when the executable can be asked; why it cannot stands in Reason already.
	if description, err := d.host.Describe(ctx, spec); err == nil {
		detail.ConfigSchema = api.AttributesOf(description.GetConfigSchema())
		detail.AccountSchema = api.AttributesOf(description.GetAccountSchema())
	}
	return detail, nil
}

// RestartPlugin starts a new process, also of a plugin that failed for good.
func (d *daemon) RestartPlugin(ctx context.Context, name string) (api.Plugin, error) {
	if _, _, err := d.pluginNamed(name); err != nil {
		return api.Plugin{}, err
	}
	if err := d.restart(ctx, name); err != nil {
		var failure *plugin.Failure
		if !errors.As(err, &failure) {
			return api.Plugin{}, err
		}
		return api.Plugin{}, &api.Error{
			Code: api.CodeUnavailable, Message: "plugin " + name + " did not start: " + failure.Sentence(), Remedy: "\"noria plugins info " + name + "\" shows its last output",
		}
	}
	info, _, err := d.pluginNamed(name)
	return pluginOf(info), err
}

// restart also tries a plugin again that could not be used.
func (d *daemon) restart(ctx context.Context, name string) error {
	if d.setup.Load().unusable(name) == nil {
		return d.host.Restart(ctx, name)
	}
	d.retryUnusable(ctx)
	if still := d.setup.Load().unusable(name); still != nil {
		return still
	}
	return nil
}

func (d *daemon) pluginNamed(name string) (plugin.Info, plugin.Spec, error) {
	for _, info := range d.pluginInfos() {
		if info.Name != name {
			continue
		}
		if spec, ok := d.setup.Load().specNamed(name); ok {
			return info, spec, nil
		}
	}
	err := api.Errorf(api.CodeNotFound, "no plugin %q runs", name)
	err.Remedy = "\"noria plugins list\" shows them"
	return plugin.Info{}, plugin.Spec{}, err
}

func pluginOf(info plugin.Info) api.Plugin {
	p := api.Plugin{
		Name: info.Name, Provider: info.Provider, Version: info.Version, SDK: info.SDK, Status: string(info.State),
		PID: info.PID, StartedAt: info.StartedAt, Restarts: info.Restarts, Accounts: info.Accounts,
		SHA256: info.SHA256, Digest: string(info.Digest), Source: info.Source, Path: info.Path,
		RetryAt: info.RetryAt, Dev: info.Dev,
	}
	if info.Failure != nil {
		p.Reason, p.Detail = string(info.Failure.Reason), info.Failure.Sentence()
	}
	return p
}
