package quota

import (
	"math"
	"time"
)

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

// Dated reports whether the clock clears it, so that its end may date a forecast. A missing entitlement is only tried
// again after a while, which is no promise.
func (b Blocker) Dated() bool {
	return (b.Cause == CauseQuota || b.Cause == CauseThrottle || b.Cause == CauseNetwork) && !b.End().IsZero()
}

// clearedBy reports whether an observation of its window, taken after it was seen, ends it.
func (b Blocker) clearedBy(usedPercent float64, same bool) bool {
	return usedPercent < fullPercent &&
		(!same || usedPercent <= math.Min(shownRoomAfterRejection, b.ShownPercent-clearRoomStep))
}

// Cooldown is a short pause of an account. It detours requests and moves no binding.
type Cooldown struct {
	Cause Cause     `json:"cause"`
	Until time.Time `json:"until"`
	// Since is when the trouble was seen, Failures how many in a row.
	Since    time.Time `json:"since"`
	Failures int       `json:"failures,omitempty"`
}

// In reports whether it is in force at that time.
func (c Cooldown) In(at time.Time) bool { return at.Before(c.Until) }

const (
	// throttlePause is assumed when the provider gives no hint; longestPause bounds what a hint may ask for.
	throttlePause = 30 * time.Second
	longestPause  = time.Hour
	// Network trouble pauses from the second failure in a row: networkPause, doubling up to longestNetworkPause.
	networkPause        = 5 * time.Second
	longestNetworkPause = time.Minute
	networkMemory       = 2 * time.Minute
)

func throttled(rejection Rejection, at time.Time) Cooldown {
	until := at.Add(throttlePause)
	switch {
	case rejection.RetryAfter > 0:
		until = at.Add(min(rejection.RetryAfter, longestPause))
	case rejection.ClearsAt.After(at):
		until = rejection.ClearsAt
		if limit := at.Add(longestPause); until.After(limit) {
			until = limit
		}
	}
	return Cooldown{Cause: CauseThrottle, Until: until, Since: at, Failures: 1}
}

// unreachable counts one more connection failure.
func (c Cooldown) unreachable(at time.Time) Cooldown {
	if at.Sub(c.Since) > networkMemory {
		c = Cooldown{}
	}
	next := Cooldown{Cause: CauseNetwork, Since: at, Failures: c.Failures + 1}
	if next.Failures > 1 {
		pause := networkPause << min(next.Failures-2, 8)
		next.Until = at.Add(min(pause, longestNetworkPause))
	}
	return next
}
