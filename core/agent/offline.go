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
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	setup, found, err := Configure(ctx, path, scratch.catalog)
	if err != nil {
		return nil, err
	}
	host, err := plugin.New(plugin.Options{
		Catalog: scratch.options(&setup.Config.Host), RunDir: filepath.Join(scratch.dir, "run"), HostVersion: version,
	})
	if err != nil {
		return nil, fmt.Errorf("ask plugins about the configuration: %w", err)
	}
	for _, spec := range setup.Specs {
		said, err := host.Validate(ctx, spec)
		if err != nil {
			found = append(found, unusablePlugin(setup.File, spec, err))
			continue
		}
		found = append(found, placed(setup.File, spec.Provider, said)...)
	}
	return found, errors.Join(found.Err(), host.Close(ctx))
}

// Effective is the configuration with every default filled in, as HCL without anything secret.
func Effective(ctx context.Context, path string) ([]byte, error) {
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	setup, _, err := Configure(ctx, path, scratch.catalog)
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

	scratch *scratch
}

// Close removes what looking at plugins needed.
func (i *Inventory) Close() { i.scratch.Close() }

// TakeInventory finds the plugins of a configuration without a daemon. Errors in the configuration do not hinder it, since
// looking at plugins is how some of them are mended. The inventory must be closed.
func TakeInventory(path string) (*Inventory, error) {
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	file, _ := config.Parse(path)
	inventory := &Inventory{File: file, scratch: scratch}
	if inventory.Catalog, err = scratch.catalog(file); err == nil {
		err = inventory.list()
	}
	if err != nil {
		scratch.Close()
		return nil, fmt.Errorf("list plugins: %w", err)
	}
	return inventory, nil
}

func (i *Inventory) list() error {
	bundled, err := i.Catalog.Bundled()
	if err != nil {
		return err
	}
	add := func(provider config.ProviderName) {
		if spec, ok := specOf(&i.File.Host, provider, bundled); ok {
			i.Specs = append(i.Specs, spec)
		}
	}
	for _, provider := range i.File.Providers {
		add(provider)
	}
	for _, block := range i.File.Plugins {
		if !slices.ContainsFunc(i.Specs, func(s plugin.Spec) bool { return s.Name == block.Name }) {
			add(config.ProviderName{Name: block.Name, Plugin: block.Name})
		}
	}
	if len(i.Specs) == 0 {
		i.Specs = bundled
	}
	slices.SortStableFunc(i.Specs, func(a, b plugin.Spec) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// scratch is a directory for the copies and sockets of plugins that are only asked something, so that asking leaves
// nothing behind in a state directory. The path of a socket is short; that of a state directory need not be.
type scratch struct{ dir string }

func newScratch() (*scratch, error) {
	dir, err := os.MkdirTemp(shortTempDir(), "noria-")
	if err != nil {
		return nil, fmt.Errorf("make directory for plugins: %w", err)
	}
	return &scratch{dir: dir}, nil
}

// shortTempDir is the system's directory for what is temporary, unless its path leaves no room for the name of a socket.
func shortTempDir() string {
	const longest = 30
	if dir := os.TempDir(); len(dir) <= longest {
		return dir
	}
	return "/tmp"
}

// Close removes it; what cannot be removed is left to the system, like all that is temporary.
func (s *scratch) Close() { _ = os.RemoveAll(s.dir) }

func (s *scratch) options(host *config.Host) plugin.CatalogOptions {
	return plugin.CatalogOptions{PluginDir: host.PluginDir, CacheDir: filepath.Join(s.dir, "plugins")}
}

func (s *scratch) catalog(file *config.File) (*plugin.Catalog, error) {
	return plugin.NewCatalog(s.options(&file.Host))
}
