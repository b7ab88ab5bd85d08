package cli

import "context"

func (p *Program) reloadCommand() *command {
	c := p.newCommand("reload", "", "Apply the configuration file again").withJSON()
	c.about = `
Makes the daemon read its configuration again, check it with the plugins, and apply what has changed. On
any error the last good configuration stays in force, and the exit code is 78.`
	c.examples = []string{"noria reload"}
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		result, err := c.client().Reload(ctx)
		if err != nil {
			return err
		}
		if c.json {
			err = c.printJSON(result)
		} else if len(result.Diagnostics) > 0 {
			err = result.Diagnostics.Write(p.Stderr, c.colourOn(p.Stderr))
		}
		switch {
		case err != nil:
			return err
		case !result.Applied:
			if !c.json {
				c.errorf("\nNothing was applied; configuration %d stays in force.\n", result.Generation)
			}
			return &exitError{code: exitConfig}
		case c.json:
			return nil
		case len(result.Changes) == 0:
			return c.printf("Nothing has changed.\n")
		}
		for _, change := range result.Changes {
			note := ""
			if change.Restart {
				note = " (takes effect when the daemon is restarted)"
			}
			if err := c.printf("%s %s%s\n", change.How, text(change.What), note); err != nil {
				return err
			}
		}
		return c.printf("Configuration %d is in force.\n", result.Generation)
	}
	return c
}
