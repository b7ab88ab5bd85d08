package cli

import (
	"context"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) tokenCommands() []*command {
	show := func(name string) *command {
		c := p.newCommand(name, "", "Print the key that clients show to the proxy").withJSON()
		c.about = `
Prints the key of this user's clients, for a client that is not started by "noria run". It opens the
proxy of this daemon and nothing else; it is no provider's credential. Clients of "noria run" have keys
of their own: who has one is told on standard error.`
		c.examples = []string{"noria token show"}
		c.run = func(ctx context.Context, args, _ []string) error {
			if err := c.exactly(0, args); err != nil {
				return err
			}
			token, err := c.client().Token(ctx)
			return c.printToken(token, err)
		}
		return c
	}
	return []*command{show("token"), show("token show"), p.tokenRotate()}
}

func (p *Program) tokenRotate() *command {
	c := p.newCommand("token rotate", "", "Make another key for clients").withJSON()
	c.about = `
Makes another key and prints it. The old one is refused from now on. Clients of "noria run" have keys of
their own, which end with them, and go on; with -runs their keys end now as well.`
	c.examples = []string{"noria token rotate", "noria token rotate -runs"}
	runs := c.flags.Bool("runs", false, "also end the keys of clients that \"noria run\" has started")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		token, err := c.client().RotateToken(ctx, api.RotateRequest{Runs: *runs})
		return c.printToken(token, err)
	}
	return c
}

// printToken prints the key alone on standard output, for scripts, and beside it what a person wants to know.
func (c *command) printToken(token api.Token, err error) error {
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(token)
	}
	if token.Ended > 0 {
		c.errorf("%s ended.\n", count(token.Ended, "key of a run", "keys of runs"))
	}
	if len(token.Runs) > 0 {
		c.errorf("%s:\n", count(len(token.Runs), "run has a key of its own", "runs have keys of their own"))
	}
	for _, run := range token.Runs {
		c.errorf("  %s, pid %d, for %s\n", text(run.Provider), run.PID, span(c.program.Now().Sub(run.Since)))
	}
	return c.printf("%s\n", text(token.Key))
}
