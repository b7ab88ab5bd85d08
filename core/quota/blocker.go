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
// again after a while, which is no promise; nor is the end of a pause that we made up ourselves.
func (b Blocker) Dated() bool {
	return (b.Cause == CauseQuota || b.Cause == CauseThrottle) && !b.End().IsZero()
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
	// Hinted: Until is the provider's word. Otherwise it is our own guess, which dates nothing.
	Hinted bool `json:"hinted,omitempty"`
}

// In reports whether it is in force at that time.
func (c Cooldown) In(at time.Time) bool { return at.Before(c.Until) }

// back moves it with a wall clock that went back: a pause is a duration, not a date.
func (c *Cooldown) back(by time.Duration) {
	for _, t := range []*time.Time{&c.Since, &c.Until} {
		if !t.IsZero() {
			*t = t.Add(-by)
		}
	}
}

const (
	// throttlePause is assumed when the provider gives no hint; longestPause bounds what a hint may ask for.
	throttlePause = 30 * time.Second
	longestPause  = time.Hour
	// Network trouble pauses from the second failure in a row: networkPause, doubling up to longestNetworkPause.
	networkPause        = 5 * time.Second
	longestNetworkPause = time.Minute
	// A credential that did not come pauses at once: credentialPause, doubling up to longestCredentialPause. It ends
	// when the credential comes.
	credentialPause        = 30 * time.Second
	longestCredentialPause = 2 * time.Minute
	// troubleMemory: failures further apart are not in a row.
	troubleMemory = 2 * time.Minute
)

func throttled(rejection Rejection, at time.Time) Cooldown {
	hint := rejection.RetryAfter
	if hint <= 0 {
		hint = rejection.ClearsAt.Sub(at)
	}
	pause := Cooldown{Cause: CauseThrottle, Until: at.Add(throttlePause), Since: at, Failures: 1}
	if hint > 0 {
		pause.Until, pause.Hinted = at.Add(min(hint, longestPause)), hint <= longestPause
	}
	return pause
}

// unreachable counts one more connection failure.
func (c Cooldown) unreachable(at time.Time) Cooldown {
	next := c.again(CauseNetwork, at)
	if next.Failures > 1 {
		next.Until = at.Add(doubled(networkPause, next.Failures-2, longestNetworkPause))
	}
	return next
}

// withoutCredential counts one more credential that did not come in time.
func (c Cooldown) withoutCredential(at time.Time) Cooldown {
	next := c.again(CauseCredential, at)
	next.Until = at.Add(doubled(credentialPause, next.Failures-1, longestCredentialPause))
	return next
}

// again counts one more failure in a row.
func (c Cooldown) again(cause Cause, at time.Time) Cooldown {
	if !c.remembered(at) {
		c = Cooldown{}
	}
	return Cooldown{Cause: cause, Since: at, Failures: c.Failures + 1}
}

// remembered reports whether the last failure is recent enough to count.
func (c Cooldown) remembered(at time.Time) bool {
	return c.Failures > 0 && at.Sub(c.Since) <= troubleMemory
}

func doubled(pause time.Duration, times int, longest time.Duration) time.Duration {
	return min(pause<<min(times, 8), longest)
}
