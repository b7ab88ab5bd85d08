package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/quota"
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
Switches an account on or off by hand; that outlives restarts. An account serves when it is enabled here
and in noria.hcl. Sessions on an account that is disabled are placed again at their next request.`
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
	c.about = `
Reads the quota of the named accounts, or of all when none is named, from their official sources now. What
a provider tells only with the answers to requests stays as it was.`
	c.examples = []string{"noria accounts refresh", "noria accounts refresh codex/main"}
	c.predict = c.predictAccounts()
	c.run = func(ctx context.Context, args, _ []string) error {
		accounts, err := c.client().RefreshAccounts(ctx, args)
		if err := c.printAccounts(accounts, err); err != nil || c.json {
			return err
		}
		return c.printPending(accounts)
	}
	return c
}

// printPending tells of accounts about which a read says nothing.
func (c *command) printPending(accounts []api.Account) error {
	pending := func(w api.Window) bool { return w.State == string(quota.ViewPending) }
	var names []string
	for _, a := range accounts {
		if slices.ContainsFunc(a.Windows, pending) {
			names = append(names, a.ID().String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return c.printf("\nPending windows of %s: the source has not told them; some come only with the answer to a request.\n", text(strings.Join(names, ", ")))
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
	return predict(func(ctx context.Context) ([]api.Account, error) { return c.client().Accounts(ctx) },
		func(a api.Account) string { return a.ID().String() })
}
