package cli

import (
	"context"
	"fmt"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/ansi"
)

func (p *Program) sessionsCommands() []*command {
	return []*command{
		p.sessionsList("sessions"), p.sessionsList("sessions list"),
		p.sessionsShow(), p.sessionsMove(), p.sessionsForget(),
	}
}

func (p *Program) sessionsList(name string) *command {
	c := p.newCommand(name, "", "List which session lives on which account").withJSON()
	c.about = "Lists sessions and the account that each of their models is bound to, most recently used first."
	c.examples = []string{"noria sessions list", "noria sessions list -account claude/work -json"}
	var filter api.SessionFilter
	c.flags.StringVar(&filter.Provider, "provider", "", "only sessions of this `PROVIDER`")
	c.flags.StringVar(&filter.Account, "account", "", "only sessions on this `PROVIDER/NAME`")
	limit := c.limitFlag("sessions")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		if filter.Limit = *limit; filter.Limit < 1 {
			return usagef("-limit must be at least 1")
		}
		sessions, err := c.client().Sessions(ctx, filter)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(sessions)
		case len(sessions) == 0:
			return c.printf("No session is bound.\n")
		}
		t := &table{header: []string{"SESSION", "HASH", "MODEL", "ACCOUNT", "BOUND", "BY", "USED", "IN FLIGHT"}}
		for _, s := range sessions {
			p.sessionRows(t, s)
		}
		return c.printTable(t)
	}
	return c
}

func (p *Program) sessionRows(t *table, s api.Session) {
	for i, b := range s.Bindings {
		cells := []string{s.Key, s.Hash, b.Model, b.Account, p.ago(b.BoundAt), b.BoundBy, p.ago(b.LastUsed), fmt.Sprint(s.InFlight)}
		if i > 0 {
			cells[0], cells[1], cells[7] = " ", " ", " "
		}
		t.add(cells...)
	}
	if len(s.Bindings) == 0 {
		t.add(s.Key, s.Hash, "", "", "", "", p.ago(s.LastUsed), fmt.Sprint(s.InFlight))
	}
}

func (p *Program) sessionsShow() *command {
	c := p.newCommand("sessions show", "SESSION", "Show one session and its moves").withJSON()
	c.about = `
Shows where a session lives and how it came there. SESSION is its key, its identity or its hash, or a
unique beginning of one of these.`
	c.examples = []string{"noria sessions show 7f3a", "noria sessions show claude/7f3a9c1e-5b7d -json"}
	c.predict = c.predictSessions()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		detail, err := c.client().Session(ctx, args[0])
		return c.printSession(detail, err)
	}
	return c
}

func (p *Program) sessionsMove() *command {
	c := p.newCommand("sessions move", "SESSION PROVIDER/NAME", "Move a session to another account").withJSON()
	c.about = `
Binds all models of a session to another account of the same provider, because you say so. Its next
request goes there, if the account can serve. Noria itself moves a session only when its account cannot.`
	c.examples = []string{"noria sessions move 7f3a claude/personal"}
	c.predict = complete.PredictOr(c.predictSessions(), c.predictAccounts())
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(2, args); err != nil {
			return err
		}
		client := c.client()
		detail, err := client.MoveSession(ctx, args[0], args[1])
		if err == nil {
			c.warnUnusable(ctx, client, args[1])
		}
		return c.printSession(detail, err)
	}
	return c
}

// warnUnusable says that an account cannot serve now, so that a session which was moved there does not stay.
func (c *command) warnUnusable(ctx context.Context, client *api.Client, name string) {
	accounts, err := client.Accounts(ctx)
	if err != nil {
		return // the move is done, and this was only a courtesy
	}
	for _, a := range accounts {
		if a.ID().String() != name || a.Usable {
			continue
		}
		why, _ := accountState(a)
		for _, b := range a.Blockers {
			if !b.Cooldown && b.Model == "" {
				why = c.program.blockerText(a, b)
			}
		}
		c.errorf("%s: %s cannot serve now: %s. Until it can, a request of the session moves it to an account that can.\n",
			c.style(c.program.Stderr, ansi.Warn, "Warning"), text(name), text(why))
	}
}

func (p *Program) sessionsForget() *command {
	c := p.newCommand("sessions forget", "SESSION", "Forget where a session lives")
	c.about = "Drops a session's bindings. Its next request is placed like that of a new session."
	c.examples = []string{"noria sessions forget 7f3a"}
	c.predict = c.predictSessions()
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(1, args); err != nil {
			return err
		}
		if err := c.client().ForgetSession(ctx, args[0]); err != nil {
			return err
		}
		return c.printf("Forgotten.\n")
	}
	return c
}

func (c *command) printSession(s api.SessionDetail, err error) error {
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(s)
	}
	p := c.program
	if err := c.printf("session %s (%s), last used %s, %s in flight\n\n", text(s.Key), text(s.Hash), p.ago(s.LastUsed),
		count(s.InFlight, "request", "requests")); err != nil {
		return err
	}
	if err := c.printTable(p.bindingTable(s.Bindings)); err != nil {
		return err
	}
	if len(s.History) == 0 {
		return nil
	}
	if err := c.printf("\n"); err != nil {
		return err
	}
	return c.printTable(p.eventTable(s.History))
}

// bindingTable has a row per model, and its earlier homes below.
func (p *Program) bindingTable(bindings []api.Binding) *table {
	t := &table{header: []string{"MODEL", "ACCOUNT", "BOUND", "BY", "CAUSE", "USED"}}
	for _, b := range bindings {
		r := t.add(b.Model, b.Account, p.ago(b.BoundAt), b.BoundBy, causeText(b.BoundBy, b.Cause), p.ago(b.LastUsed))
		for _, m := range b.Moves {
			by := m.By
			if cause := causeText(m.By, m.Cause); cause != "" {
				by += ": " + cause
			}
			r.note("%s: %s to %s by %s", p.ago(m.At), m.From, m.To, by)
		}
	}
	return t
}

// causeText is the cause of a move, unless who made it says the same.
func causeText(by, cause string) string {
	if cause == by {
		return ""
	}
	return inWords(cause)
}

// predictSessions completes session keys when a daemon runs.
func (c *command) predictSessions() complete.Predictor {
	return predict(func(ctx context.Context) ([]api.Session, error) {
		return c.client().Sessions(ctx, api.SessionFilter{Limit: 50})
	}, func(s api.Session) string { return s.Key })
}
