package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/ansi"
	"github.com/noria-dev/noria/core/placement"
)

func (p *Program) explainCommand() *command {
	c := p.newCommand("explain", "SESSION|REQUEST", "Say why an account was chosen").withJSON()
	c.about = `
Says where a session lives, how it came there, and what its next request would get: every account, what
filtered it or its score, the arithmetic for each window, and the forecast when nobody can serve. Nothing
is placed by asking. A request is named by the x-noria-request header of its answer.

With -new PROVIDER it says what a new session would get; the exit code is then 3 when nobody can serve.

The columns of the arithmetic, where ~ is an estimate and - is not known:

` + indented(placement.Columns)
	c.examples = []string{"noria explain 7f3a", "noria explain -new claude -model claude-opus-4-1"}
	c.predict = c.predictSessions()
	var req api.ExplainRequest
	c.flags.StringVar(&req.Provider, "new", "", "a new session of this `PROVIDER`")
	c.flags.StringVar(&req.Model, "model", "", "`MODEL` that is asked for (default: the one that the session used last)")
	c.run = func(ctx context.Context, args, _ []string) error {
		switch {
		case req.Provider == "":
			if err := c.exactly(1, args); err != nil {
				return err
			}
			req.Subject = args[0]
		case len(args) > 0:
			return usagef("name a session or -new, not both")
		}
		e, err := c.client().Explain(ctx, req)
		if err != nil {
			return err
		}
		if c.json {
			err = c.printJSON(e)
		} else {
			err = c.printExplanation(e)
		}
		if err == nil && req.Provider != "" && e.Now != nil && !e.Now.Placed {
			err = &exitError{code: exitBlocked}
		}
		return err
	}
	return c
}

func (c *command) printExplanation(e api.Explanation) error {
	told := false
	if e.Session != nil {
		told = true
		if err := c.printSession(api.SessionDetail{Session: *e.Session}, nil); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		lead     string
		decision *placement.Decision
	}{{c.pastLead(e), e.Last}, {nextLead(e), e.Now}} {
		if part.decision == nil {
			continue
		}
		if err := c.printDecision(told, part.lead, *part.decision); err != nil {
			return err
		}
		told = true
	}
	if e.Request != "" && e.Last == nil {
		if err := c.printf("\nNo account was chosen for request %s: it went where its session lived, or was not placed.\n", text(e.Request)); err != nil {
			return err
		}
	}
	if err := c.printReservations(e.Reservations); err != nil {
		return err
	}
	return c.printPast(e)
}

func (c *command) printReservations(reservations []api.Reservation) error {
	for i, r := range reservations {
		if i == 0 {
			if err := c.printf("\n"); err != nil {
				return err
			}
		}
		reserved := "an unknown share"
		if len(r.Estimates) > 0 {
			var parts []string
			for _, e := range r.Estimates {
				parts = append(parts, fmt.Sprintf("~%.2f%% of %s", e.Percent, cmp.Or(e.Name, e.Window)))
			}
			reserved = strings.Join(parts, ", ")
		}
		line := fmt.Sprintf("Reserved on %s for request %s, %s: %s.", r.Account, r.Request, c.program.ago(r.StartedAt), reserved)
		if err := c.printf("%s\n", text(line)); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) pastLead(e api.Explanation) string {
	if e.Last == nil {
		return ""
	}
	subject := "it"
	if e.Request != "" {
		subject = "request " + e.Request
	}
	return fmt.Sprintf("When %s was placed%s, %s:", subject, forModel(e), c.program.ago(e.Last.At))
}

func nextLead(e api.Explanation) string {
	if e.Session == nil {
		return "A new session" + forModel(e) + ":"
	}
	return "Its next request" + forModel(e) + ":"
}

func forModel(e api.Explanation) string {
	if e.Model == "" {
		return ""
	}
	return " for model " + e.Model
}

func (c *command) printDecision(apart bool, lead string, d placement.Decision) error {
	if apart {
		if err := c.printf("\n"); err != nil {
			return err
		}
	}
	if err := c.printf("%s\n", c.style(c.program.Stdout, ansi.Bold, text(lead))); err != nil {
		return err
	}
	for line := range strings.Lines(placement.ExplainFor(d, c.program.when)) {
		if err := c.printf("%s\n", text(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

// toldEvents is how much of its past an explanation tells.
const toldEvents = 20

// printPast tells of the past what says something: the whole of a request, of a session what did not simply go well.
func (c *command) printPast(e api.Explanation) error {
	told := e.History
	if e.Request == "" {
		told = slices.DeleteFunc(slices.Clone(told), wentWell)
	}
	told = told[max(len(told)-toldEvents, 0):]
	if len(e.History) > 0 {
		if err := c.printf("\n"); err != nil {
			return err
		}
	}
	if len(told) > 0 {
		if err := c.printTable(c.program.eventTable(told)); err != nil {
			return err
		}
	}
	if rest := len(e.History) - len(told); rest > 0 {
		return c.printf("%s; \"noria sessions show\" has them.\n", count(rest, "more event", "more events"))
	}
	return nil
}

func wentWell(e api.Event) bool {
	return (e.Operation == events.OperationRequest || e.Operation == events.OperationAttempt) && e.Outcome == "accepted"
}
