package agent

import (
	"context"
	"errors"
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
	// Unusable are plugins whose executables do not say what they are. What belongs to them was not decoded.
	Unusable []UnusablePlugin
}

// UnusablePlugin is a plugin that cannot even be asked what it is.
type UnusablePlugin struct {
	Spec    plugin.Spec
	Failure *plugin.Failure
	// Finding is the failure at the line that names the executable.
	Finding config.Diagnostic
}

// providerOf is the provider that the plugin of that name serves.
func (s *Setup) providerOf(plugin string) string {
	spec, _ := s.specNamed(plugin)
	return spec.Provider
}

// specNamed finds the plugin of that name, usable or not.
func (s *Setup) specNamed(name string) (plugin.Spec, bool) {
	for _, spec := range s.Specs {
		if spec.Name == name {
			return spec, true
		}
	}
	for _, u := range s.Unusable {
		if u.Spec.Name == name {
			return u.Spec, true
		}
	}
	return plugin.Spec{}, false
}

// unusable is why the plugin of that name cannot be used; nil when it can.
func (s *Setup) unusable(name string) *plugin.Failure {
	for _, u := range s.Unusable {
		if u.Spec.Name == name {
			return u.Failure
		}
	}
	return nil
}

// unusableFindings are errors of a configuration for all but a daemon that others need.
func (s *Setup) unusableFindings() (found config.Diagnostics) {
	for _, u := range s.Unusable {
		found = append(found, u.Finding)
	}
	return found
}

// Configure reads a configuration and asks the executables of its plugins for the schemas that the rest of it is decoded
// by. It starts no adapter, needs no daemon, and touches nothing but what catalogOf does. A diagnostic that is an error comes
// as config.Diagnostics in err; warnings come beside a Setup, which has no unusable plugin.
func Configure(ctx context.Context, path string, catalogOf func(*config.File) (*plugin.Catalog, error)) (*Setup, config.Diagnostics, error) {
	return strictly(configureLeniently(ctx, path, "", catalogOf))
}

// strictly refuses a configuration with an unusable plugin.
func strictly(setup *Setup, diags config.Diagnostics, err error) (*Setup, config.Diagnostics, error) {
	if err == nil && len(setup.Unusable) > 0 {
		return nil, nil, append(diags, setup.unusableFindings()...)
	}
	return setup, diags, err
}

// configureLeniently is Configure for who can do without some of the plugins. A state directory that a daemon uses already is
// not looked at: what became of it is told elsewhere.
func configureLeniently(ctx context.Context, path, used string, catalogOf func(*config.File) (*plugin.Catalog, error)) (*Setup, config.Diagnostics, error) {
	file, diags := config.Parse(path)
	if diags.HasErrors() && len(file.Providers) == 0 {
		// There is nothing more to find.
		return nil, nil, diags
	}
	if !diags.HasErrors() && file.State.Dir != used {
		diags = append(diags, file.CheckState()...)
	}
	catalog, err := catalogOf(file)
	switch {
	case err != nil && diags.HasErrors():
		return nil, nil, diags // which may well be the cause
	case err != nil:
		return nil, nil, err
	}
	return setupOf(ctx, file, diags, catalog)
}

// setupOf decodes what belongs to plugins. What was found in the file before is diags.
func setupOf(ctx context.Context, file *config.File, diags config.Diagnostics, catalog *plugin.Catalog) (*Setup, config.Diagnostics, error) {
	setup := &Setup{File: file}
	schemas, err := setup.describeAll(ctx, catalog)
	if err != nil {
		return nil, nil, err
	}
	cfg, decoded := file.Decode(schemas)
	if diags = slices.Concat(diags, decoded); diags.HasErrors() {
		return nil, nil, append(diags, setup.unusableFindings()...)
	}
	setup.Config = cfg
	for i, spec := range setup.Specs {
		provider, ok := cfg.Provider(spec.Provider)
		if !ok {
			return nil, nil, fmt.Errorf("configure provider %s: it is not in the decoded configuration", spec.Provider)
		}
		setup.Specs[i].Config = provider.Config
	}
	return setup, diags, nil
}

// describeAll asks the plugin of every provider what it is. The schemas are as [config.File.Decode] wants them.
func (s *Setup) describeAll(ctx context.Context, catalog *plugin.Catalog) (map[string]*pluginv1.DescribeResponse, error) {
	bundled, err := catalog.Bundled()
	if err != nil {
		return nil, fmt.Errorf("list bundled adapters: %w", err)
	}
	schemas := map[string]*pluginv1.DescribeResponse{}
	for _, spec := range bundled {
		schemas[spec.Provider] = nil // for what a misspelt provider may have meant
	}
	for _, provider := range s.File.Providers {
		spec, ok := specOf(&s.File.Host, provider, bundled)
		if !ok {
			// Decode says at the right line that there is no such plugin.
			delete(schemas, provider.Name)
			continue
		}
		description, err := catalog.Describe(ctx, spec)
		if err != nil {
			schemas[provider.Name] = nil // told of here, so that Decode does not
			s.Unusable = append(s.Unusable, UnusablePlugin{Spec: spec, Failure: failureOf(err), Finding: unusablePlugin(s.File, spec, err)})
			continue
		}
		schemas[provider.Name] = description
		s.Specs = append(s.Specs, spec)
	}
	return schemas, nil
}

// failureOf is what an error of a plugin's start or description says; all of them should be failures.
func failureOf(err error) *plugin.Failure {
	var failure *plugin.Failure
	if !errors.As(err, &failure) {
		failure = &plugin.Failure{Reason: plugin.ReasonDescribe, Detail: err.Error(), Digest: plugin.DigestUnknown}
	}
	return failure
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
