package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) connectCommand(name string) *command {
	c := p.newCommand(name, "PROVIDER/NAME", "Log an account in with its official client")
	c.about = `
Runs the official client's own login for the account in this terminal, then reads the account anew. What
was known of its quota is forgotten before, since another user may log in. The login itself is between
you, the official client and the provider: Noria sees none of it.`
	c.examples = []string{"noria connect claude/work", "noria connect codex/main"}
	c.predict = c.predictAccounts()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		return c.connect(ctx, args[0])
	}
	return c
}

// connect runs the login and tells what became of the account. A login that failed is told by its exit code.
func (c *command) connect(ctx context.Context, account string) error {
	client := c.client()
	plan, err := client.Connect(ctx, account)
	if err != nil {
		return err
	}
	if len(plan.Argv) == 0 {
		return fmt.Errorf("%w: it has no program", errUnusablePlan)
	}
	code, ran := c.execute(invocation{argv: plan.Argv, environment: environmentOf(os.Environ(), plan.Environment, plan.Unset, strings.Clone)})
	after, err := client.Connected(ctx, account)
	switch {
	case ran != nil:
		return ran
	case code != exitDone:
		return &exitError{code: code}
	case err != nil:
		return err
	}
	return c.printTable(c.program.accountTable([]api.Account{after}))
}
