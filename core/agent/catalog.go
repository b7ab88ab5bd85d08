package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
)

// configure reads the configuration that the daemon starts with. One that is refused leaves no state directory behind. A
// plugin that cannot be used harms its own provider only, unless there is no other.
func (a *Agent) configure(ctx context.Context) (*Setup, config.Diagnostics, error) {
	var apart *scratch
	defer func() {
		if apart != nil {
			apart.Close()
		}
	}()
	setup, diags, err := configureLeniently(ctx, a.options.ConfigPath, "", func(file *config.File) (*plugin.Catalog, error) {
		if _, err := os.Lstat(file.State.Dir); err == nil && file.CheckState() == nil {
			return plugin.NewCatalog(a.catalogOptions(&file.Host, file.State.Dir))
		}
		var err error
		if apart, err = newScratch(); err != nil {
			return nil, err
		}
		return apart.catalog(file)
	})
	if err == nil && len(setup.Specs) == 0 && len(setup.Unusable) > 0 {
		return nil, nil, append(diags, setup.unusableFindings()...)
	}
	return setup, diags, err
}

// reconfigure reads the configuration again while the daemon runs. Its state directory stays the one that it started with.
func (a *Agent) reconfigure(ctx context.Context) (*Setup, config.Diagnostics, error) {
	dir := a.setup.Load().Config.State.Dir
	return strictly(configureLeniently(ctx, a.options.ConfigPath, dir, func(file *config.File) (*plugin.Catalog, error) {
		return plugin.NewCatalog(a.catalogOptions(&file.Host, dir))
	}))
}

func (a *Agent) catalogOptions(host *config.Host, stateDir string) plugin.CatalogOptions {
	return plugin.CatalogOptions{
		Logger: a.log, Redactor: a.redactor, PluginDir: host.PluginDir, CacheDir: filepath.Join(stateDir, "plugins"),
	}
}
