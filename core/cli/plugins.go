package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/ansi"
)

func (p *Program) pluginsCommands() []*command {
	return []*command{
		p.pluginsList("plugins"), p.pluginsList("plugins list"), p.pluginsInfo(), p.pluginsVerify(), p.pluginsPin(),
		p.pluginsRestart(), p.pluginsTest(),
	}
}

func (p *Program) pluginsList(name string) *command {
	c := p.newCommand(name, "", "List the adapters").withJSON()
	c.about = `
Lists the adapter of every provider with its state and the digest of its executable. With the daemon
down it lists what the executables say of themselves, with the status offline. The exit code is 0 even
when an adapter failed; with -strict it is 2.`
	c.examples = []string{"noria plugins list", "noria plugins list -strict -json"}
	strict := c.flags.Bool("strict", false, "exit code 2 when an adapter is not ready (offline: not usable)")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		plugins, err := c.client().Plugins(ctx)
		if errors.Is(err, api.ErrNotRunning) {
			plugins, err = c.offlinePlugins(ctx)
		}
		if err != nil {
			return err
		}
		if c.json {
			err = c.printJSON(plugins)
		} else {
			err = c.printPlugins(plugins)
		}
		if err == nil && *strict && !allUsable(plugins) {
			err = &exitError{code: exitUsage}
		}
		return err
	}
	return c
}

func allUsable(plugins []api.Plugin) bool {
	for _, plugin := range plugins {
		switch plugin.Status {
		case "ready", "disabled":
		case statusOffline:
			if plugin.Reason != "" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (c *command) printPlugins(plugins []api.Plugin) error {
	if len(plugins) == 0 {
		return c.printf("No plugin is configured, and none is bundled beside this executable.\n")
	}
	p := c.program
	t := &table{header: []string{"NAME", "PROVIDER", "VERSION", "SDK", "STATUS", "PID", "UPTIME", "RESTARTS", "ACCOUNTS", "SHA256", "SOURCE"}}
	for _, plugin := range plugins {
		pid, uptime := "", ""
		if plugin.PID != 0 {
			pid, uptime = fmt.Sprint(plugin.PID), span(p.Now().Sub(plugin.StartedAt))
		}
		r := t.add(plugin.Name, plugin.Provider, plugin.Version, plugin.SDK, plugin.Status, pid, uptime,
			fmt.Sprint(plugin.Restarts), fmt.Sprint(plugin.Accounts), digestText(plugin), plugin.Source)
		r.style[4] = pluginStyle(plugin)
		if plugin.Detail != "" || plugin.Reason != "" {
			r.note("%s: %s%s", plugin.Name, failureText(plugin), p.retryText(plugin))
		}
		if plugin.Reason != "" && (plugin.Status == "failed" || plugin.Status == statusOffline) {
			r.note("%s: %s", plugin.Name, agent.PluginRemedy(plugin.Name, plugin.Reason))
		}
		if plugin.Dev {
			r.note("%s: dev = true, its executable is not checked", plugin.Name)
		}
	}
	return c.printTable(t)
}

func pluginStyle(plugin api.Plugin) ansi.Style {
	switch plugin.Status {
	case "ready":
		return ansi.Good
	case "failed":
		return ansi.Error
	case "backoff", "starting", "configuring", "draining":
		return ansi.Warn
	}
	return ansi.Dim
}

func failureText(plugin api.Plugin) string {
	if plugin.Detail != "" {
		return plugin.Detail
	}
	return strings.ReplaceAll(plugin.Reason, "_", " ")
}

func (p *Program) retryText(plugin api.Plugin) string {
	if plugin.RetryAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (retry in %s)", span(plugin.RetryAt.Sub(p.Now())))
}

// digestText is short: the beginning and the end of the digest, and what came of comparing it.
func digestText(plugin api.Plugin) string {
	digest := plugin.SHA256
	if len(digest) > 6 {
		digest = digest[:4] + "…" + digest[len(digest)-2:]
	}
	return strings.TrimSpace(digest + " " + plugin.Digest)
}

func (p *Program) pluginsInfo() *command {
	c := p.newCommand("plugins info", "NAME", "Show one adapter and what it offers").withJSON()
	c.about = "Shows an adapter with its services, the attributes that it takes in noria.hcl, and its last lines of output."
	c.examples = []string{"noria plugins info claude"}
	c.predict = c.predictPlugins()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		detail, err := c.client().Plugin(ctx, args[0])
		if errors.Is(err, api.ErrNotRunning) {
			detail, err = c.offlinePlugin(ctx, args[0])
		}
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(detail)
		}
		return c.printPlugin(detail)
	}
	return c
}

func (c *command) printPlugin(d api.PluginDetail) error {
	if err := c.printPlugins([]api.Plugin{d.Plugin}); err != nil {
		return err
	}
	for _, list := range []struct {
		name  string
		words []string
	}{
		{"path", []string{d.Path}}, {"sha256", []string{d.SHA256}}, {"services", d.Services}, {"environment", d.Environment}, {"accounts", d.AccountNames},
	} {
		if value := strings.Join(list.words, " "); value != "" {
			if err := c.printf("\n%s: %s", list.name, text(value)); err != nil {
				return err
			}
		}
	}
	if err := c.printf("\n"); err != nil {
		return err
	}
	for _, schema := range []struct {
		block      string
		attributes []api.Attribute
	}{{"provider", d.ConfigSchema}, {"account", d.AccountSchema}} {
		if err := c.printSchema(schema.block, schema.attributes); err != nil {
			return err
		}
	}
	if len(d.LastStderr) == 0 {
		return nil
	}
	if err := c.printf("\nlast output (%d lines dropped):\n", d.DroppedLogLines); err != nil {
		return err
	}
	for _, line := range d.LastStderr {
		if err := c.printf("  %s\n", text(line)); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) printSchema(block string, attributes []api.Attribute) error {
	if len(attributes) == 0 {
		return nil
	}
	if err := c.printf("\nattributes of its %s blocks:\n\n", block); err != nil {
		return err
	}
	t := &table{header: []string{"NAME", "TYPE", "DEFAULT", "MEANING"}}
	for _, a := range attributes {
		kind := strings.ReplaceAll(a.Type, "_", " ")
		if a.Required {
			kind += ", required"
		}
		if a.Sensitive {
			kind += ", sensitive"
		}
		t.add(a.Name, kind, a.Default, a.Doc)
	}
	return c.printTable(t)
}

func (p *Program) pluginsRestart() *command {
	c := p.newCommand("plugins restart", "NAME", "Start a new process of an adapter").withJSON()
	c.about = "Starts a new process of an adapter, also of one that failed for good. Streams in flight go on."
	c.examples = []string{"noria plugins restart acme"}
	c.predict = c.predictPlugins()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		plugin, err := c.client().RestartPlugin(ctx, args[0])
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(plugin)
		}
		return c.printPlugins([]api.Plugin{plugin})
	}
	return c
}

// predictPlugins completes names of plugins when a daemon runs.
func (c *command) predictPlugins() complete.Predictor {
	return predict(func(ctx context.Context) ([]api.Plugin, error) { return c.client().Plugins(ctx) },
		func(plugin api.Plugin) string { return plugin.Name })
}
