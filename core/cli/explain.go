package cli

import (
	"context"
	"fmt"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/placement"
)

func (p *Program) explainCommand() *command {
	c := p.newCommand("explain", "SESSION|REQUEST", "Say why an account was chosen").withJSON()
	c.about = `
Says where a session lives, how it came there, and what its next request would get: every account, what
filtered it or its score, the arithmetic per window, and the forecast when nobody can serve. Nothing is
placed by asking. A request is named by the x-noria-request header of its answer.

With -new PROVIDER it says what a new session would get; the exit code is then 3 when nobody can serve.`
	c.examples = []string{"noria explain 7f3a", "noria explain -new claude -model claude-opus-4-1"}
	c.predict = c.predictSessions()
	var req api.ExplainRequest
	c.flags.StringVar(&req.Provider, "new", "", "a new session of this `PROVIDER`")
	c.flags.StringVar(&req.Model, "model", "", "`MODEL` of the new session")
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
	p := c.program
	if e.Session != nil {
		if err := c.printSession(api.SessionDetail{Session: *e.Session, History: e.History}, nil); err != nil {
			return err
		}
	} else if len(e.History) > 0 {
		if err := c.printTable(p.eventTable(e.History)); err != nil {
			return err
		}
	}
	if e.Last != nil {
		if err := c.printDecision("\nWhen it was placed, "+p.ago(e.Last.At), e.Last); err != nil {
			return err
		}
	}
	if e.Now != nil {
		lead := "\nIts next request"
		if e.Session == nil {
			lead = "A new session"
		}
		return c.printDecision(lead, e.Now)
	}
	return nil
}

func (c *command) printDecision(lead string, d *placement.Decision) error {
	if err := c.printf("%s: %s\n", lead, text(c.program.decisionText(d))); err != nil {
		return err
	}
	if len(d.Candidates) == 0 {
		return nil
	}
	if err := c.printf("\n"); err != nil {
		return err
	}
	if err := c.printTable(candidateTable(d.Candidates)); err != nil {
		return err
	}
	terms := termTable(d.Candidates)
	if len(terms.rows) == 0 {
		return nil
	}
	if err := c.printf("\n"); err != nil {
		return err
	}
	return c.printTable(terms)
}

func (p *Program) decisionText(d *placement.Decision) string {
	if !d.Placed {
		return "no account can serve; " + p.forecastText(d.Forecast)
	}
	how := map[placement.How]string{
		placement.HowBound:    "where it is bound",
		placement.HowFollow:   "where another request of the session is being placed",
		placement.HowSibling:  "where the session lives with another model",
		placement.HowKnown:    fmt.Sprintf("greatest score %.3f", d.Score),
		placement.HowCautious: "tried with caution, since nothing better is known",
	}[d.How]
	if d.How == placement.HowKnown && d.Margin > 0 {
		how += fmt.Sprintf(", ahead by %.3f", d.Margin)
	}
	return fmt.Sprintf("%s (%s)", d.Account, how)
}

func candidateTable(candidates []placement.Candidate) *table {
	t := &table{header: []string{"ACCOUNT", "STEP", "SCORE", "DETAIL"}}
	for _, candidate := range candidates {
		step, score := "scored", fmt.Sprintf("%.3f", candidate.Score)
		switch {
		case candidate.Filtered != "":
			step, score = candidate.Filtered, ""
		case !candidate.Known():
			step = "cautious"
		}
		t.add(candidate.Account.String(), step, score, candidate.Detail)
	}
	return t
}

// termTable is the arithmetic of the score; the symbols are those of the documentation of core/placement.
func termTable(candidates []placement.Candidate) *table {
	t := &table{header: []string{"ACCOUNT", "WINDOW", "STATE", "κ %/REQ", "USED %", "RESV %", "COMMIT %", "NEW %", "H", "RATE /H", "SUST /H"}}
	number := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	for _, candidate := range candidates {
		for _, term := range candidate.Terms {
			t.add(candidate.Account.String(), term.Window, term.State, number(term.Kappa), number(term.Used), number(term.Reserved),
				number(term.Committed), number(term.New), number(term.HoursLeft), number(term.Rate), number(term.Sustainable))
		}
	}
	return t
}
