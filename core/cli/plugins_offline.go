package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/plugin"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// statusOffline is the status of an adapter that no daemon runs.
const statusOffline = "offline"

// offlinePlugins lists what the executables say of themselves, after their digests were checked.
func (c *command) offlinePlugins(ctx context.Context) ([]api.Plugin, error) {
	inventory, err := agent.TakeInventory(c.configPath)
	if err != nil {
		return nil, err
	}
	defer inventory.Close()
	plugins := make([]api.Plugin, 0, len(inventory.Specs))
	for _, spec := range inventory.Specs {
		found, _ := offline(ctx, inventory, spec)
		plugins = append(plugins, found)
	}
	return plugins, nil
}

func (c *command) offlinePlugin(ctx context.Context, name string) (api.PluginDetail, error) {
	inventory, err := agent.TakeInventory(c.configPath)
	if err != nil {
		return api.PluginDetail{}, err
	}
	defer inventory.Close()
	spec, err := specNamed(inventory, name)
	if err != nil {
		return api.PluginDetail{}, err
	}
	found, description := offline(ctx, inventory, spec)
	return api.PluginDetail{
		Plugin: found, Services: description.GetServices(), Environment: description.GetEnvironment(),
		ConfigSchema: api.AttributesOf(description.GetConfigSchema()), AccountSchema: api.AttributesOf(description.GetAccountSchema()),
	}, nil
}

func specNamed(inventory *agent.Inventory, name string) (plugin.Spec, error) {
	for _, spec := range inventory.Specs {
		if spec.Name == name {
			return spec, nil
		}
	}
	return plugin.Spec{}, &api.Error{
		Code: api.CodeNotFound, Message: "there is no plugin " + name, Remedy: "\"noria plugins list\" shows them",
	}
}

func offline(ctx context.Context, inventory *agent.Inventory, spec plugin.Spec) (api.Plugin, *pluginv1.DescribeResponse) {
	seen := inventory.Catalog.Verify(spec)
	found := api.Plugin{
		Name: spec.Name, Provider: spec.Provider, Status: statusOffline, SHA256: seen.SHA256, Digest: string(seen.Digest),
		Source: seen.Source, Path: spec.Path, Dev: spec.Dev, Accounts: inventory.File.AccountsEnabled(spec.Provider),
	}
	err := seen.Err
	var description *pluginv1.DescribeResponse
	if err == nil {
		description, err = inventory.Catalog.Describe(ctx, spec)
	}
	if err != nil {
		found.Reason, found.Detail = whyNot(err)
		return found, nil
	}
	found.Version, found.SDK = description.GetVersion(), description.GetSdkVersion()
	return found, description
}

// whyNot tells why an executable is not to be run: in a word and in a sentence.
func whyNot(err error) (reason, sentence string) {
	var failure *plugin.Failure
	if errors.As(err, &failure) {
		return string(failure.Reason), failure.Sentence()
	}
	return string(plugin.ReasonDescribe), err.Error()
}

func (p *Program) pluginsVerify() *command {
	c := p.newCommand("plugins verify", "[NAME ...]", "Check the executables of adapters").withJSON()
	c.about = `
Looks at the executables as a start would: where they lie, who may change them, whether the digest is the
configured one. Nothing is run. The exit code is 1 when one may not be run.`
	c.examples = []string{"noria plugins verify", "noria plugins verify acme -json"}
	c.run = func(_ context.Context, args, _ []string) error {
		inventory, err := agent.TakeInventory(c.configPath)
		if err != nil {
			return err
		}
		defer inventory.Close()
		specs := inventory.Specs
		if len(args) > 0 {
			specs = nil
			for _, name := range args {
				spec, err := specNamed(inventory, name)
				if err != nil {
					return err
				}
				specs = append(specs, spec)
			}
		}
		return c.printVerified(inventory.Catalog, specs)
	}
	return c
}

// verified is one row of plugins verify.
type verified struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Digest string `json:"digest"`
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (c *command) printVerified(catalog *plugin.Catalog, specs []plugin.Spec) error {
	rows := make([]verified, 0, len(specs))
	t := &table{header: []string{"NAME", "DIGEST", "PATH"}}
	var outcome error
	for _, spec := range specs {
		seen := catalog.Verify(spec)
		v := verified{Name: spec.Name, Path: spec.Path, SHA256: seen.SHA256, Digest: string(seen.Digest)}
		r := t.add(v.Name, v.Digest, v.Path)
		if seen.Err != nil {
			v.Reason, v.Error = whyNot(seen.Err)
			r.note("%s: %s", v.Name, v.Error)
			outcome = &exitError{code: exitFailed}
		}
		rows = append(rows, v)
	}
	if c.json {
		return errors.Join(c.printJSON(rows), outcome)
	}
	return errors.Join(c.printTable(t), outcome)
}

func (p *Program) pluginsPin() *command {
	c := p.newCommand("plugins pin", "NAME|PATH", "Print the digest to put into noria.hcl").withJSON()
	c.about = `
Prints the line that pins a plugin's executable. Compare the digest with what the plugin's author
published before you put it into noria.hcl.`
	c.examples = []string{"noria plugins pin acme", "noria plugins pin ./noria-provider-acme"}
	c.run = func(_ context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		inventory, err := agent.TakeInventory(c.configPath)
		if err != nil {
			return err
		}
		defer inventory.Close()
		path := args[0]
		if !strings.Contains(path, "/") {
			spec, err := specNamed(inventory, path)
			if err != nil {
				return err
			}
			path = spec.Path
		}
		digest, err := inventory.Catalog.Pin(path)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(map[string]string{"path": path, "sha256": digest})
		}
		return c.printf("sha256 = %q\n", digest)
	}
	return c
}
