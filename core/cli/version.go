package cli

import (
	"context"
	"runtime"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) versionCommand() *command {
	c := p.newCommand("version", "", "Print the version").withJSON()
	c.about = "Prints the version of this executable. It asks no daemon."
	c.examples = []string{"noria version -json"}
	c.run = func(_ context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		v := api.VersionInfo{
			Version: p.Version, API: api.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		}
		if c.json {
			return c.printJSON(v)
		}
		return c.printf("noria %s (control API %s, %s, %s/%s)\n", v.Version, v.API, v.Go, v.OS, v.Arch)
	}
	return c
}
