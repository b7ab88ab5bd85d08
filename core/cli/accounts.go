package cli

import (
	"context"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) accountsCommands() []*command {
	list := func(name string) *command {
		c := p.newCommand(name, "", "List accounts with their clocks").withJSON()
		c.about = "Lists every account with its windows, what blocks it, its sessions and requests in flight."
		c.examples = []string{"noria accounts list", "noria accounts list -json"}
		c.run = func(ctx context.Context, args, _ []string) error {
			if err := c.exactly(0, args); err != nil {
				return err
			}
			accounts, err := c.client().Accounts(ctx)
			return c.printAccounts(accounts, err)
		}
		return c
	}
	return []*command{
		list("accounts"), list("accounts list"),
		p.switchCommand("enable", "Let an account serve again", true),
		p.switchCommand("disable", "Take an account out of service", false),
		p.refreshCommand(), p.connectCommand("connect"), p.connectCommand("accounts connect"),
	}
}

func (p *Program) switchCommand(action, synopsis string, enabled bool) *command {
	c := p.newCommand("accounts "+action, "PROVIDER/NAME", synopsis).withJSON()
	c.about = `
Turns the operator's switch of an account. It stays turned over restarts. An account serves when it is
enabled here and in noria.hcl. Sessions of a disabled account are placed anew at their next request.`
	c.examples = []string{"noria accounts " + action + " claude/work"}
	c.predict = c.predictAccounts()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		account, err := c.client().SetAccountEnabled(ctx, args[0], enabled)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(account)
		case account.Enabled != enabled:
			return c.printf("%s is still disabled: noria.hcl has enabled = false.\n", text(account.ID().String()))
		}
		return c.printf("%s is %sd.\n", text(account.ID().String()), action)
	}
	return c
}

func (p *Program) refreshCommand() *command {
	c := p.newCommand("accounts refresh", "[PROVIDER/NAME ...]", "Read the quota of accounts now").withJSON()
	c.about = "Reads the quota of the named accounts from their official sources now, of all when none is named."
	c.examples = []string{"noria accounts refresh", "noria accounts refresh codex/main"}
	c.predict = c.predictAccounts()
	c.run = func(ctx context.Context, args, _ []string) error {
		accounts, err := c.client().RefreshAccounts(ctx, args)
		return c.printAccounts(accounts, err)
	}
	return c
}

func (c *command) printAccounts(accounts []api.Account, err error) error {
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(accounts)
	case len(accounts) == 0:
		return c.printf("No account is configured.\n")
	}
	return c.printTable(c.program.accountTable(accounts))
}

// predictAccounts completes the names of accounts when a daemon runs.
func (c *command) predictAccounts() complete.Predictor {
	return complete.PredictFunc(func(complete.Args) []string {
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		accounts, err := c.client().Accounts(ctx)
		if err != nil {
			return nil
		}
		names := make([]string, len(accounts))
		for i, a := range accounts {
			names[i] = text(a.ID().String())
		}
		return names
	})
}
