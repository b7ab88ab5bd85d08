package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Setup is a configuration that was read and decoded, with the adapters that it asks for.
type Setup struct {
	Config *config.Config
	Specs  []plugin.Spec
	File   *config.File
}

// providerOf is the provider that the plugin of that name serves.
func (s *Setup) providerOf(plugin string) string {
	for _, spec := range s.Specs {
		if spec.Name == plugin {
			return spec.Provider
		}
	}
	return ""
}

// Configure reads a configuration and asks the executables of its plugins for the schemas that the rest of it is decoded
// by. It starts no adapter, needs no daemon, and touches nothing but what catalogOf does. A diagnostic that is an error comes
// as config.Diagnostics in err; warnings come beside a Setup.
func Configure(ctx context.Context, path string, catalogOf func(*config.File) (*plugin.Catalog, error)) (*Setup, config.Diagnostics, error) {
	file, diags := config.Parse(path)
	if diags.HasErrors() && len(file.Providers) == 0 {
		// There is nothing more to find.
		return nil, nil, diags
	}
	if !diags.HasErrors() {
		diags = append(diags, file.CheckState()...)
	}
	catalog, err := catalogOf(file)
	switch {
	case err != nil && diags.HasErrors():
		return nil, nil, diags // which may well be the cause
	case err != nil:
		return nil, nil, err
	}
	specs, schemas, found, err := describeAll(ctx, file, catalog)
	if err != nil {
		return nil, nil, err
	}
	cfg, decoded := file.Decode(schemas)
	diags = slices.Concat(diags, found, decoded)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	for i, spec := range specs {
		provider, ok := cfg.Provider(spec.Provider)
		if !ok {
			return nil, nil, fmt.Errorf("configure provider %s: it is not in the decoded configuration", spec.Provider)
		}
		specs[i].Config = provider.Config
	}
	return &Setup{Config: cfg, Specs: specs, File: file}, diags, nil
}

// describeAll asks the plugin of every provider what it is. The schemas are as [config.File.Decode] wants them.
func describeAll(ctx context.Context, file *config.File, catalog *plugin.Catalog) (specs []plugin.Spec, schemas map[string]*pluginv1.DescribeResponse, found config.Diagnostics, err error) {
	bundled, err := catalog.Bundled()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("list bundled adapters: %w", err)
	}
	schemas = map[string]*pluginv1.DescribeResponse{}
	for _, spec := range bundled {
		schemas[spec.Provider] = nil // for what a misspelt provider may have meant
	}
	for _, provider := range file.Providers {
		spec, ok := specOf(&file.Host, provider, bundled)
		if !ok {
			// Decode says at the right line that there is no such plugin.
			delete(schemas, provider.Name)
			continue
		}
		description, err := catalog.Describe(ctx, spec)
		if err != nil {
			found = append(found, unusablePlugin(file, spec, err))
			schemas[provider.Name] = nil // said here, so that Decode does not
			continue
		}
		schemas[provider.Name] = description
		specs = append(specs, spec)
	}
	return specs, schemas, found, nil
}

// specOf finds the executable of a provider's plugin: one that the configuration names, else a bundled one.
func specOf(host *config.Host, provider config.ProviderName, bundled []plugin.Spec) (plugin.Spec, bool) {
	for _, p := range host.Plugins {
		if p.Name != provider.Plugin || p.Path == "" {
			continue
		}
		path := p.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(host.PluginDir, path)
		}
		spec := plugin.Spec{
			Name: p.Name, Provider: provider.Name, Path: path, SHA256: p.SHA256, Dev: p.Dev, Environment: p.Environment,
		}
		if p.Dev {
			spec.Reattach = runningAdapter(p.Name, os.Getenv(wire.EnvReattach))
		}
		return spec, true
	}
	for _, spec := range bundled {
		if spec.Name != provider.Plugin {
			continue
		}
		spec.Provider = provider.Name
		for _, p := range host.Plugins {
			if p.Name == spec.Name {
				spec.Environment = p.Environment
			}
		}
		return spec, true
	}
	return plugin.Spec{}, false
}
