package quota

import (
	"slices"
	"time"
)

// MaxWindows bounds the windows of an account, declared and reported.
const MaxWindows = 16

// Account is one account with its clocks, blockers and work. It is not safe for concurrent use: its owner guards it.
// Windows, Blockers and Completed outlive the process; the rest is of sessions and of work in flight.
type Account struct {
	ID AccountID
	// Enabled is what counts: configured and not switched off.
	Enabled bool
	// Models are names or patterns that it may serve; empty: all.
	Models []string
	// Unmetered: it has no quota clocks.
	Unmetered bool
	// AllowOverage: the user allows extra credits to be spent, so a full window alone keeps no work away.
	AllowOverage bool
	// UsageLag is how long the provider's own figures trail completed work.
	UsageLag time.Duration

	Windows   []Window
	Blockers  []Blocker
	Completed Counts
	Cadence   Cadence

	// Throttle, Credential and Network are cooldowns.
	Throttle, Credential, Network Cooldown
	// InFlight are reservations: requests that were placed and have not ended.
	InFlight Counts
	// Unconfirmed cautious attempts.
	Unconfirmed int
	// LiveSessions that are active or being placed here.
	LiveSessions int
	// PlacedAt is when a session was last placed here.
	PlacedAt time.Time

	recent recentCompletions
}

// NewAccount restores an account from what was kept of it.
func NewAccount(id AccountID, windows []Window, blockers []Blocker, completed Counts) *Account {
	a := &Account{ID: id, Windows: slices.Clone(windows), Blockers: slices.Clone(blockers), Completed: completed.Clone()}
	for i := range a.Windows {
		a.Windows[i].prior = priorOf(a.Windows[i].Length)
	}
	return a
}

// Declare sets the windows of the account's profile. What is known of a window is kept as long as its length stays; windows
// that were only reported stay; those that are declared no more are dropped, if nothing was ever observed of them.
func (a *Account) Declare(declarations []Declaration) {
	if len(declarations) > MaxWindows {
		declarations = declarations[:MaxWindows]
	}
	for i := range a.Windows {
		a.Windows[i].Declared = false
	}
	for _, d := range declarations {
		a.declare(d, true)
	}
	a.Windows = slices.DeleteFunc(a.Windows, func(w Window) bool {
		return !w.Declared && w.Evidence == EvidenceNone && w.Shown == Shown{}
	})
}

func (a *Account) declare(d Declaration, byProfile bool) *Window {
	w := a.Window(d.ID)
	if w == nil {
		if len(a.Windows) >= MaxWindows {
			return nil
		}
		a.Windows = append(a.Windows, Window{})
		w = &a.Windows[len(a.Windows)-1]
	}
	if w.Length != d.Length {
		*w = Window{prior: priorOf(d.Length)}
	}
	w.Declaration, w.Declared = d, byProfile || w.Declared
	return w
}

// Window finds one by its id.
func (a *Account) Window(id string) *Window {
	for i := range a.Windows {
		if a.Windows[i].ID == id {
			return &a.Windows[i]
		}
	}
	return nil
}

// Serves reports whether the account is enabled and may serve the model.
func (a *Account) Serves(model string) bool { return a.Enabled && ModelMatches(a.Models, model) }

// Settle lets time pass: resets roll windows, passed predictions and bounds turn them unknown, ended blockers go. It
// reports whether anything durable changed.
func (a *Account) Settle(at time.Time) (changed bool) {
	for i := range a.Windows {
		if a.Windows[i].settle(at, a.completedAt) {
			changed = true
		}
	}
	if !slices.ContainsFunc(a.Blockers, func(b Blocker) bool { return !b.In(at) }) {
		return changed
	}
	a.Blockers = slices.DeleteFunc(slices.Clone(a.Blockers), func(b Blocker) bool {
		if b.In(at) {
			return false
		}
		if w := a.Window(b.Window); w != nil && b.ClearsAt.IsZero() {
			w.forget() // ended by a bound alone: the window may be anywhere
		}
		return true
	})
	return true
}

// Accepted notes that the upstream accepted work of the model: predicted clocks begin. It reports whether one did.
func (a *Account) Accepted(model string, at time.Time) (changed bool) {
	for i := range a.Windows {
		if w := &a.Windows[i]; w.AppliesTo(model) && w.started(at) {
			changed = true
		}
	}
	return changed
}

// ForgetObservations drops what was read of its quota, at the boundary of a new login. Blockers by rejection and what was
// learned stay.
func (a *Account) ForgetObservations() {
	for i := range a.Windows {
		a.Windows[i].forget()
		a.Windows[i].Shown = Shown{}
	}
}

// NotLaterThan takes the account back with a wall clock that went from before back to at: no time of evidence stays in the
// future, and cooldowns keep what was left of them. Resets stay what they are, as far as they are still plausible.
func (a *Account) NotLaterThan(at, before time.Time) {
	for i := range a.Windows {
		a.Windows[i].notLaterThan(at)
	}
	if a.Cadence.At.After(at) {
		a.Cadence.At = at
	}
	if a.PlacedAt.After(at) {
		a.PlacedAt = at
	}
	a.Blockers = slices.Clone(a.Blockers)
	for i := range a.Blockers {
		a.blockerNotLaterThan(&a.Blockers[i], at)
	}
	for _, c := range []*Cooldown{&a.Throttle, &a.Credential, &a.Network} {
		c.back(before.Sub(at))
	}
	a.recent.notLaterThan(at)
}
