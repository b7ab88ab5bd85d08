package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/sdk/plugintest"
)

func (p *Program) pluginsTest() *command {
	c := p.newCommand("plugins test", "PATH", "Run the conformance suite against an adapter").withJSON()
	c.about = `
Takes an executable as a daemon would and holds it to the adapter protocol, with fixtures that say what
its provider answers. It uses no network and no configuration. The exit code is 1 when a check fails.`
	c.examples = []string{"noria plugins test ./noria-provider-acme -fixtures testdata/fixtures.json"}
	c.predict = complete.PredictFiles("*")
	fixtures := c.flags.String("fixtures", "", "JSON `FILE` of the provider's cases (default testdata/fixtures.json, else fixtures.json beside the executable)")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		file, err := fixturesFile(*fixtures, args[0])
		if err != nil {
			return err
		}
		report, err := plugintest.RunBinary(ctx, args[0], file)
		if err != nil {
			return fmt.Errorf("test plugin: %w", err)
		}
		if c.json {
			err = c.printJSON(report)
		} else {
			err = report.WriteText(p.Stdout)
		}
		if err == nil && !report.Passed() {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

func fixturesFile(given, executable string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir := filepath.Dir(executable)
	for _, candidate := range []string{filepath.Join("testdata", "fixtures.json"), filepath.Join(dir, "testdata", "fixtures.json"), filepath.Join(dir, "fixtures.json")} {
		if _, err := os.Stat(candidate); err == nil {
			return candidate, nil
		}
	}
	return "", usagef("no fixtures.json is near %s; name the file with -fixtures", executable)
}
