package cli

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/placement"
)

func (p *Program) statusCommand() *command {
	c := p.newCommand("status", "", "Show accounts, their clocks, blockers and forecast").withJSON()
	c.about = `
Shows the daemon, every account with its windows, what blocks it, and when a provider can serve again.
A percentage with ~ is an estimate, a reset with ~ a prediction.`
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
	for _, provider := range s.Providers {
		if adapter := provider.Adapter; adapter != "ready" && adapter != "" {
			if err := c.printf("\n%s: its adapter is %s, see \"noria plugins list\"\n", text(provider.Name), text(adapter)); err != nil {
				return err
			}
		}
		if provider.Forecast == nil {
			continue
		}
		if err := c.printf("\n%s: no account can serve now; %s\n", text(provider.Name), text(p.forecastText(*provider.Forecast))); err != nil {
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
		r.note("%s", p.blockerText(b))
	}
	if a.ProbeError != "" {
		r.note("last read of the quota failed: %s", a.ProbeError)
	}
}

func accountState(a api.Account) (state, style string) {
	switch {
	case a.DisabledBy != "":
		return "off (" + a.DisabledBy + ")", styleDim
	case !a.Enabled:
		return "off", styleDim
	case noLogin(a):
		return loginText(a), styleError
	case !a.Usable:
		return "blocked", styleError
	}
	for _, b := range a.Blockers {
		if b.Cooldown {
			return "cooling down", styleWarn
		}
	}
	return "usable", styleGood
}

// noLogin reports whether the account has no login that it could serve with.
func noLogin(a api.Account) bool {
	return a.Auth == "signed_out" || a.Auth == "expired" || a.Auth == "not_eligible" || a.Auth == "unavailable"
}

func loginText(a api.Account) string {
	if a.Auth == "unavailable" {
		return "login unavailable"
	}
	return strings.ReplaceAll(a.Auth, "_", " ")
}

func windowName(w api.Window) string {
	name := w.Label
	if name == "" {
		name = w.ID
	}
	if len(w.Models) > 0 {
		name += " " + strings.Join(w.Models, ",")
	}
	return name
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
	state := strings.ReplaceAll(w.State, "_", " ")
	if w.ObservedAt.IsZero() {
		return state
	}
	return state + ", " + p.ago(w.ObservedAt)
}

func (p *Program) blockerText(b api.Blocker) string {
	var s strings.Builder
	if b.Cooldown {
		s.WriteString("cooldown: ")
	}
	s.WriteString(strings.ReplaceAll(string(b.Cause), "_", " "))
	if b.Window != "" {
		fmt.Fprintf(&s, " of window %s", b.Window)
	}
	if b.Model != "" {
		fmt.Fprintf(&s, ", only model %s", b.Model)
	}
	if b.Reason != "" {
		fmt.Fprintf(&s, " (%s)", b.Reason)
	}
	switch {
	case !b.ClearsAt.IsZero():
		fmt.Fprintf(&s, ", clears %s", p.in(b.ClearsAt))
	case !b.NoLaterThan.IsZero():
		fmt.Fprintf(&s, ", clears no later than %s", p.in(b.NoLaterThan))
	default:
		s.WriteString(", until somebody mends it")
	}
	return s.String()
}

// forecastText says when somebody can serve again, and how sure that is.
func (p *Program) forecastText(f placement.Forecast) string {
	var s strings.Builder
	switch f.Kind {
	case placement.ForecastExact:
		fmt.Fprintf(&s, "%s can serve again %s", f.Account, p.in(f.At))
	case placement.ForecastNoLaterThan:
		fmt.Fprintf(&s, "%s can serve again no later than %s", f.Account, p.in(f.At))
	default:
		s.WriteString("when is unknown: somebody has to mend it")
	}
	if causes := causesText(f.Causes); causes != "" {
		fmt.Fprintf(&s, " (%s)", causes)
	}
	return s.String()
}
