package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/noria-dev/noria/core/api"
)

// connectedTime is how long the daemon may take to read the account after a login.
const connectedTime = time.Minute

func (p *Program) connectCommand(name string) *command {
	c := p.newCommand(name, "PROVIDER/NAME", "Log in to an account with its official client")
	c.about = `
Runs the official client's own login for the account in this terminal, then reads the account again. What
was known of its quota is forgotten first, since somebody else may log in. The login itself is between
you, the official client and the provider: Noria sees none of it. The exit code is the client's.`
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
	c.errorf("Logging in to %s with: %s\n", text(account), text(loginLine(plan)))
	code, ran := c.execute(invocation{argv: plan.Argv, environment: environmentOf(os.Environ(), plan.Environment, plan.Unset, strings.Clone)})
	after, err := c.connected(ctx, client, account)
	switch {
	case ran != nil:
		return ran
	case code != exitDone:
		c.complain(fmt.Sprintf("the login of %s did not succeed: %s %s", account, plan.Argv[0], endOf(code)),
			"what was known of its quota is forgotten until it is read again; run the command again to log in")
		return &exitError{code: code}
	case err != nil:
		return err
	}
	return c.printTable(c.program.accountTable([]api.Account{after}))
}

// connected ends the login at the daemon, also when a signal ended it here.
func (c *command) connected(ctx context.Context, client *api.Client, account string) (api.Account, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectedTime)
	defer cancel()
	return client.Connected(ctx, account)
}

// loginLine is the command line of a login. Of its environment it shows the folders: they tell which login it is.
func loginLine(plan api.LoginPlan) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(plan.Environment)) {
		if value := plan.Environment[name]; filepath.IsAbs(value) {
			parts = append(parts, name+"="+value)
		}
	}
	return strings.Join(append(parts, plan.Argv...), " ")
}

// endOf says in words how a program ended that had this exit code of ours.
func endOf(code int) string {
	if code > signalled && code < signalled+32 {
		return fmt.Sprintf("was ended by a signal (%s)", syscall.Signal(code-signalled))
	}
	return fmt.Sprintf("ended with exit code %d", code)
}
