package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/config"
)

func (p *Program) configCommands() []*command {
	return []*command{
		p.groupCommand("config", "Check, format and show the configuration", "config validate", "config fmt", "config show"),
		p.configValidate(), p.configFormat(), p.configShow(),
	}
}

func (p *Program) configValidate() *command {
	c := p.newCommand("config validate", "[FILE]", "Check the configuration").withJSON()
	c.about = `
Reads the configuration as the daemon would, asks every plugin about its part, and points at every line
that is wrong. It needs no daemon and changes nothing. The exit code is 78 when there is an error.`
	c.examples = []string{"noria config validate", "noria config validate noria.hcl -json"}
	c.predict = complete.PredictFiles("*.hcl")
	c.run = func(ctx context.Context, args, _ []string) error {
		path, err := c.file(args)
		if err != nil {
			return err
		}
		found, err := agent.Validate(ctx, path, p.Version)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(append(config.Diagnostics{}, found.Sorted()...))
		case len(found) > 0:
			if err := found.Write(p.Stderr, c.colourOn(p.Stderr)); err != nil {
				return fmt.Errorf("print diagnostics: %w", err)
			}
		}
		return c.printf("%s is valid.\n", text(path))
	}
	return c
}

func (p *Program) configFormat() *command {
	c := p.newCommand("config fmt", "[FILE]", "Format the configuration")
	c.about = `
Writes the configuration in canonical style: indentation and alignment, nothing else. With -check it
changes nothing and ends with 1 when the file would change.`
	c.examples = []string{"noria config fmt", "noria config fmt -check noria.hcl"}
	c.predict = complete.PredictFiles("*.hcl")
	check := c.flags.Bool("check", false, "only tell whether the file would change")
	c.run = func(_ context.Context, args, _ []string) error {
		path, err := c.file(args)
		if err != nil {
			return err
		}
		before, after, found := config.Format(path)
		switch {
		case found.HasErrors():
			return found
		case bytes.Equal(before, after):
			return nil
		case *check:
			if err := c.printf("%s\n", text(path)); err != nil {
				return err
			}
			c.errorf("%s is not in canonical style; \"noria config fmt\" rewrites it.\n", text(path))
			return &exitError{code: exitFailed}
		}
		if err := replaceFile(path, after); err != nil {
			return fmt.Errorf("format configuration: %w", err)
		}
		return c.printf("%s\n", text(path))
	}
	return c
}

// replaceFile writes the file anew with the mode that it has. A link to it stays a link.
func replaceFile(path string, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, content, info.Mode().Perm(), renameio.IgnoreUmask())
}

func (p *Program) configShow() *command {
	c := p.newCommand("config show", "[FILE]", "Print the configuration with every default")
	c.about = `
Prints the configuration as it is in force after a start: every default filled in, paths absolute,
functions evaluated. Sensitive values and credentials are hidden.`
	c.examples = []string{"noria config show"}
	c.predict = complete.PredictFiles("*.hcl")
	c.run = func(ctx context.Context, args, _ []string) error {
		path, err := c.file(args)
		if err != nil {
			return err
		}
		effective, err := agent.Effective(ctx, path)
		if err != nil {
			return err
		}
		return c.printf("%s", effective)
	}
	return c
}

// file is the one that an argument or -config names.
func (c *command) file(args []string) (string, error) {
	switch {
	case len(args) > 1:
		return "", usagef("unexpected argument %q", args[1])
	case len(args) == 1 && c.configPath != "":
		return "", usagef("name the file as an argument or with -config, not both")
	case len(args) == 1:
		return args[0], nil
	case c.configPath != "":
		return c.configPath, nil
	}
	return config.DefaultPath(), nil
}
