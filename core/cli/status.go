package cli

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/ansi"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

func (p *Program) statusCommand() *command {
	c := p.newCommand("status", "", "Show accounts, their clocks, blockers and forecast").withJSON()
	c.about = `
Shows the daemon, every account with its windows, what blocks it, and when a provider can serve again.
The exit code is 0 whether or not an account can serve.

A percentage with ~ is an estimate, a reset with ~ a prediction, and - is not known. READ says how old the
percentage is, and of a window:

  fresh               read within the last two refresh intervals; an older reading has its age alone
  pending             the provider has not told it yet; some windows come only with answers to requests
  awaiting first use  its clock starts with the first request
  rolled              its reset has passed and nothing was read since
  stale               read longer ago than the window is long, or no longer to be relied on
  exhausted           used up
  not exposed         the provider's last word left it out`
	c.examples = []string{"noria status", "noria status -json"}
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		status, err := c.client().Status(ctx)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(status)
		}
		return c.printStatus(status)
	}
	return c
}

func (c *command) printStatus(s api.Status) error {
	p := c.program
	err := c.printf("noria %s %s for %s, pid %d, configuration %d of %s\nlistening on %s, %s, %s, journal %s\n\n",
		text(s.Version), text(string(s.State)), span(p.Now().Sub(s.StartedAt)), s.PID, s.Generation, text(s.Config),
		text(strings.Join(s.Listen, " and ")), count(s.Sessions, "session", "sessions"), count(s.Streams, "stream", "streams"),
		text(s.Journal))
	if err != nil {
		return err
	}
	if len(s.Accounts) == 0 {
		return c.printf("No account is configured. \"noria init\" writes a configuration, noria.hcl.example shows every setting.\n")
	}
	if err := c.printTable(p.accountTable(s.Accounts)); err != nil {
		return err
	}
	return c.printTroubles(s)
}

// printTroubles tells of what is wrong with the state now, and of providers that cannot serve.
func (c *command) printTroubles(s api.Status) error {
	var lines []string
	for _, f := range s.StateFindings {
		if f.Level == string(journal.Fault) {
			lines = append(lines, fmt.Sprintf("%s: %s; %s.", f.Where, f.What, f.Do))
		}
	}
	for _, provider := range s.Providers {
		if adapter := provider.Adapter; adapter != "ready" && adapter != "" {
			lines = append(lines, fmt.Sprintf("%s: its adapter is not ready (%s), see \"noria plugins list\".", provider.Name, adapter))
		}
		if provider.Unchecked {
			lines = append(lines, fmt.Sprintf("%s: its adapter's executable is not checked (dev = true).", provider.Name))
		}
		if f := provider.Forecast; f != nil {
			lines = append(lines, fmt.Sprintf("%s: no account can serve: %s. %s.", provider.Name, placement.CausesInWords(f.Causes), f.Sentence(c.program.when)))
		}
	}
	for i, line := range lines {
		gap := ""
		if i == 0 {
			gap = "\n"
		}
		if err := c.printf("%s%s\n", gap, text(line)); err != nil {
			return err
		}
	}
	return nil
}

// accountTable has a row per window, the account's own columns in the first of them, and what blocks it below.
func (p *Program) accountTable(accounts []api.Account) *table {
	t := &table{header: []string{"ACCOUNT", "STATE", "WINDOW", "USED", "RESETS", "READ", "SESSIONS", "IN FLIGHT"}}
	for _, a := range accounts {
		state, style := accountState(a)
		own := []string{a.ID().String(), state}
		load := []string{fmt.Sprint(a.Sessions), fmt.Sprint(a.InFlight)}
		var last *row
		for i, w := range a.Windows {
			cells := append(own[:2:2], windowName(w), usedText(w), p.resetText(w), p.readText(w))
			if i > 0 {
				cells[0], cells[1] = " ", " "
				last = t.add(append(cells, " ", " ")...)
				continue
			}
			last = t.add(append(cells, load...)...)
			last.style[1] = style
		}
		if last == nil {
			last = t.add(append(append(own, "", "", "", ""), load...)...)
			last.style[1] = style
		}
		p.accountNotes(last, a)
	}
	return t
}

func (p *Program) accountNotes(r *row, a api.Account) {
	if a.AuthDetail != "" {
		r.note("%s", a.AuthDetail)
	}
	for _, b := range a.Blockers {
		if b.Cause != quota.CauseAuth || a.AuthDetail == "" {
			r.note("%s", p.blockerText(a, b))
		}
	}
	if a.ProbeError != "" {
		r.note("last read of the quota failed: %s", a.ProbeError)
	}
}

func accountState(a api.Account) (state string, style ansi.Style) {
	switch {
	case a.DisabledBy != "":
		return "off (" + a.DisabledBy + ")", ansi.Dim
	case !a.Enabled:
		return "off", ansi.Dim
	case noLogin(a):
		return loginText(a), ansi.Error
	case !a.Usable:
		return "blocked", ansi.Error
	}
	for _, b := range a.Blockers {
		if b.Cooldown {
			return "cooling down", ansi.Warn
		}
	}
	return "usable", ansi.Good
}

// noLogin reports whether the account has no login that it could serve with.
func noLogin(a api.Account) bool {
	return a.Auth == "signed_out" || a.Auth == "expired" || a.Auth == "not_eligible" || a.Auth == "unavailable"
}

func loginText(a api.Account) string {
	switch a.Auth {
	case "unavailable":
		return "login unavailable"
	case "unknown":
		return "not known yet to be signed in or out"
	}
	return inWords(a.Auth)
}

func windowName(w api.Window) string {
	return quota.Declaration{ID: w.ID, Label: w.Label, Models: w.Models}.Name()
}

func usedText(w api.Window) string {
	if w.UsedPercent == nil {
		return ""
	}
	text := fmt.Sprintf("%.0f%%", math.Floor(*w.UsedPercent))
	if w.Estimated {
		text = "~" + text
	}
	return text
}

func (p *Program) resetText(w api.Window) string {
	text := p.in(w.ResetsAt)
	if w.Predicted && text != "" {
		text = "~" + text
	}
	return text
}

func (p *Program) readText(w api.Window) string {
	state := inWords(w.State)
	switch {
	case w.ObservedAt.IsZero():
		return state
	case w.State == "observed":
		return p.ago(w.ObservedAt)
	}
	return state + ", " + p.ago(w.ObservedAt)
}

func (p *Program) blockerText(a api.Account, b api.Blocker) string {
	said := placement.Describe(quota.Blocker{Cause: b.Cause, Window: windowNamed(a, b.Window), Model: b.Model, Shown: b.Shown})
	switch {
	case b.Cause == quota.CauseAuth:
		said += fmt.Sprintf("; log in with \"noria connect %s\"", a.ID())
	case b.Cause == quota.CauseNotEntitled && !b.NoLaterThan.IsZero():
		said += "; tried again from " + p.when(b.NoLaterThan)
	default:
		said += placement.Until(b.ClearsAt, b.NoLaterThan, p.when)
	}
	if b.Shown {
		said += ", for new sessions"
	}
	return said
}

// windowNamed is what people call the account's window with that id.
func windowNamed(a api.Account, id string) string {
	for _, w := range a.Windows {
		if w.ID == id {
			return windowName(w)
		}
	}
	return id
}
