package placement

import (
	"math"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// scoring is the arithmetic of one candidate.
type scoring struct {
	account     *quota.Account
	model       string
	at          time.Time
	perHour     float64 // ν
	activeHours float64 // L
	fit         float64 // φ
}

// score fills in the candidate and appends a term for every applicable window.
//
// For each window: the requests per hour that its free allowance sustains until it comes back (rate), and those that the
// whole allowance sustains over its whole length (sust). The score is the slack: the least rate over the least sust.
func (s scoring) score(c *Candidate, terms []Term) []Term {
	a := s.account
	c.Class, c.Room = ClassKnown, true
	c.Unconfirmed, c.PlacedAt = a.Unconfirmed, a.PlacedAt
	c.Work = a.LiveSessions + int(a.InFlight.Total())
	rate, sustainable := math.Inf(1), math.Inf(1)
	declared := a.Unmetered
	for i := range a.Windows {
		w := &a.Windows[i]
		if !w.Scored() {
			continue
		}
		declared = declared || w.Declared
		if !w.AppliesTo(s.model) {
			continue
		}
		state := w.State(s.at)
		c.classify(w, state)
		if state == quota.StateUnknown {
			terms = append(terms, Term{Window: w.ID, Name: w.Name(), State: string(state)})
			continue
		}
		t := s.term(w)
		t.State = string(state)
		if state != quota.StateRolled && w.Shown.HasUsed {
			t.Observed, t.HasObserved = w.Shown.UsedPercent, true
		}
		terms = append(terms, t)
		c.Room = c.Room && t.Used < 100
		rate, sustainable = min(rate, t.Rate), min(sustainable, t.Sustainable)
	}
	if !declared {
		c.Class = ClassUnknown
	}
	if c.Class != ClassUnknown && !math.IsInf(rate, 1) {
		c.Score = rate / sustainable
	}
	return terms
}

func (c *Candidate) classify(w *quota.Window, state quota.State) {
	switch {
	case !w.Declared || state.Known():
	case state == quota.StateUnknown:
		c.Class = ClassUnknown
	case c.Known():
		c.Class = ClassStale
	}
}

func (s scoring) term(w *quota.Window) Term {
	load := s.account.Load(w, s.model, s.activeHours, s.at)
	t := Term{
		Window: w.ID, Name: w.Name(), Kappa: load.Kappa, Used: load.Used, Reserved: load.Reserved, Committed: load.Committed,
		New: load.Kappa * s.perHour * load.ActiveHours, HoursLeft: load.HoursLeft,
	}
	t.Rate = (100 - t.Used - t.Reserved - t.Committed - s.fit*t.New) / (t.Kappa * t.HoursLeft)
	t.Sustainable = 100 / (t.Kappa * w.Length.Hours())
	return t
}
