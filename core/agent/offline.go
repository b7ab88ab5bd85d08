package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
)

// Validate reads a configuration as a daemon would and asks every plugin about its part, in processes that are started
// for the question. It needs no daemon and changes nothing. Diagnostics with errors come in err as well as those without.
func Validate(ctx context.Context, path, version string) (config.Diagnostics, error) {
	setup, found, err := Configure(ctx, path, offlineCatalog)
	if err != nil {
		return nil, err
	}
	// A socket's path is short; that of a state directory need not be.
	dir, err := os.MkdirTemp("", "noria-")
	if err != nil {
		return nil, fmt.Errorf("make directory for plugins: %w", err)
	}
	defer os.RemoveAll(dir)
	host, err := plugin.New(plugin.Options{
		Catalog: offlineOptions(&setup.Config.Host), RunDir: filepath.Join(dir, "run"), HostVersion: version,
	})
	if err != nil {
		return nil, fmt.Errorf("ask plugins about the configuration: %w", err)
	}
	for _, spec := range setup.Specs {
		said, err := host.Validate(ctx, spec)
		if err != nil {
			found = append(found, setup.File.At(spec.Provider, "", "", config.Diagnostic{
				Severity: config.SeverityError, Summary: fmt.Sprintf("Plugin %q cannot be asked", spec.Name), Detail: err.Error(),
			}))
			continue
		}
		found = append(found, placed(setup.File, spec.Provider, said)...)
	}
	return found, errors.Join(found.Err(), host.Close(ctx))
}

// Effective is the configuration with every default filled in, as HCL without anything secret.
func Effective(ctx context.Context, path string) ([]byte, error) {
	setup, _, err := Configure(ctx, path, offlineCatalog)
	if err != nil {
		return nil, err
	}
	return setup.Config.Effective(), nil
}

// Inventory is what a configuration says of plugins, as far as it can be read.
type Inventory struct {
	File    *config.File
	Catalog *plugin.Catalog
	// Specs of the plugins of all providers and of further plugin blocks, or the bundled ones when there are neither.
	Specs []plugin.Spec
}

// TakeInventory finds the plugins of a configuration without a daemon. Errors in the configuration do not hinder it, since
// looking at plugins is how some of them are mended.
func TakeInventory(path string) (*Inventory, error) {
	file, _ := config.Parse(path)
	catalog, err := offlineCatalog(&file.Host)
	if err != nil {
		return nil, fmt.Errorf("open plugin catalog: %w", err)
	}
	bundled, err := catalog.Bundled()
	if err != nil {
		return nil, err
	}
	inventory := &Inventory{File: file, Catalog: catalog}
	add := func(provider config.ProviderName) {
		if spec, ok := specOf(&file.Host, provider, bundled); ok {
			inventory.Specs = append(inventory.Specs, spec)
		}
	}
	for _, provider := range file.Providers {
		add(provider)
	}
	for _, block := range file.Plugins {
		if !slices.ContainsFunc(inventory.Specs, func(s plugin.Spec) bool { return s.Name == block.Name }) {
			add(config.ProviderName{Name: block.Name, Plugin: block.Name})
		}
	}
	if len(inventory.Specs) == 0 {
		inventory.Specs = bundled
	}
	slices.SortStableFunc(inventory.Specs, func(a, b plugin.Spec) int { return strings.Compare(a.Name, b.Name) })
	return inventory, nil
}

func offlineCatalog(host *config.Host) (*plugin.Catalog, error) {
	return plugin.NewCatalog(offlineOptions(host))
}

func offlineOptions(host *config.Host) plugin.CatalogOptions {
	return plugin.CatalogOptions{PluginDir: host.PluginDir, CacheDir: filepath.Join(host.State.Dir, "plugins")}
}
