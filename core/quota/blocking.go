package quota

import (
	"iter"
	"slices"
	"time"
)

// Blocking lists the blockers that keep the model's work away at that time. placing adds those that concern new placements
// only: windows that telemetry shows full.
func (a *Account) Blocking(model string, placing bool, at time.Time) []Blocker {
	return slices.Collect(a.blocking(model, placing, at))
}

// Blocked reports whether anything keeps the model's work away; see Blocking.
func (a *Account) Blocked(model string, placing bool, at time.Time) bool {
	for range a.blocking(model, placing, at) {
		return true
	}
	return false
}

// AllBlockers lists what is in force at that time for any model, and the windows that telemetry shows full.
func (a *Account) AllBlockers(at time.Time) []Blocker {
	return slices.AppendSeq([]Blocker{}, a.inForce(true, at))
}

func (a *Account) blocking(model string, placing bool, at time.Time) iter.Seq[Blocker] {
	return func(yield func(Blocker) bool) {
		for b := range a.inForce(placing, at) {
			if a.concerns(&b, model) && !yield(b) {
				return
			}
		}
	}
}

// inForce are the blockers of all models.
func (a *Account) inForce(placing bool, at time.Time) iter.Seq[Blocker] {
	return func(yield func(Blocker) bool) {
		for i := range a.Blockers {
			if b := &a.Blockers[i]; b.In(at) && !yield(*b) {
				return
			}
		}
		if !placing || a.AllowOverage {
			return
		}
		for i := range a.Windows {
			if w := &a.Windows[i]; w.shownFull(at) && !a.rejected(w.ID, at) && !yield(w.shownBlocker()) {
				return
			}
		}
	}
}

// SignedOut reports whether the upstream refused the login, and no sign-in was seen since.
func (a *Account) SignedOut() bool {
	return slices.ContainsFunc(a.Blockers, func(b Blocker) bool { return b.Cause == CauseAuth })
}

func (a *Account) concerns(b *Blocker, model string) bool {
	if b.Model != "" && b.Model != model {
		return false
	}
	w := a.Window(b.Window)
	return w == nil || w.AppliesTo(model)
}

func (a *Account) rejected(window string, at time.Time) bool { return a.rejection(window, at) != nil }

// rejection is the newest blocker of the window in force; nil if there is none.
func (a *Account) rejection(window string, at time.Time) *Blocker {
	for i := len(a.Blockers) - 1; i >= 0; i-- {
		if b := &a.Blockers[i]; b.Window == window && b.In(at) {
			return b
		}
	}
	return nil
}

func (w *Window) shownBlocker() Blocker {
	b := Blocker{Cause: CauseQuota, Window: w.ID, Shown: true, ClearsAt: w.ResetsAt, ObservedAt: w.TakenAt, ShownPercent: w.Shown.UsedPercent}
	if w.Length > 0 {
		b.NoLaterThan = w.ReceivedAt.Add(w.Length)
	}
	return b
}
