package quota

import "time"

const (
	// shownRoomAfterRejection: a read after a rejection clears it if it shows no more than this, and clearRoomStep less
	// than was shown when the rejection came. A display that lags behind a rejection clears nothing.
	shownRoomAfterRejection = 95
	clearRoomStep           = 5
	// unnamedRoom: a rejection that names no window clears when a complete read shows all windows at or below this.
	unnamedRoom = 90
	// inferredFull: an unnamed rejection is put on the one window above unnamedRoom if it is at least here.
	inferredFull = 96
	// entitlementRetry is when an account is tried again that was not entitled.
	entitlementRetry = 24 * time.Hour
	// lengthlessRetry bounds a rejection on account of a window without a length.
	lengthlessRetry = 24 * time.Hour
)

// Blocker is a reason why an account cannot serve now.
type Blocker struct {
	Cause Cause `json:"cause"`
	// Model limits it to one model; Window names the clock that it is about, and then it covers what the window covers.
	Model  string `json:"model,omitempty"`
	Window string `json:"window,omitempty"`
	// Shown: telemetry shows nothing left. It keeps new placements away and moves no session.
	Shown bool `json:"shown,omitempty"`
	// ClearsAt is authoritative; zero is unknown, and then NoLaterThan bounds it unless only a person can clear it.
	ClearsAt    time.Time `json:"clears_at,omitzero"`
	NoLaterThan time.Time `json:"no_later_than,omitzero"`
	ObservedAt  time.Time `json:"observed_at"`
	// AttemptAt is when the attempt began that saw it.
	AttemptAt time.Time `json:"attempt_at,omitzero"`
	// ShownPercent is what telemetry showed of the window at the rejection.
	ShownPercent float64 `json:"shown_percent,omitempty"`
	// Reason is an allow-listed code.
	Reason string `json:"reason,omitempty"`
}

// Key tells blockers of one account apart: one of a kind is kept, the newest.
func (b Blocker) Key() string { return string(b.Cause) + "|" + b.Window + "|" + b.Model }

// End is when the clock ends it, zero if it never does.
func (b Blocker) End() time.Time {
	if !b.ClearsAt.IsZero() {
		return b.ClearsAt
	}
	return b.NoLaterThan
}

// In reports whether it is in force at that time.
func (b Blocker) In(at time.Time) bool {
	end := b.End()
	return end.IsZero() || at.Before(end)
}

// blockerNotLaterThan takes the time at which it was seen out of the future. The bound on it goes along: it is a duration
// since.
func (a *Account) blockerNotLaterThan(b *Blocker, at time.Time) {
	ahead := b.ObservedAt.Sub(at)
	if ahead <= 0 {
		return
	}
	b.ObservedAt = at
	if b.NoLaterThan.IsZero() {
		return
	}
	b.NoLaterThan = b.NoLaterThan.Add(-ahead)
	length := a.longest()
	if w := a.Window(b.Window); w != nil {
		length = w.Length
	}
	b.ClearsAt = plausibleReset(b.ClearsAt, at, length)
}

// Dated reports whether the clock clears it, so that its end may date a forecast. A missing entitlement is only tried
// again after a while, which is no promise; nor is the end of a pause that we made up ourselves.
func (b Blocker) Dated() bool {
	return (b.Cause == CauseQuota || b.Cause == CauseThrottle) && !b.End().IsZero()
}
