package plugin

import (
	"slices"
	"time"
)

// Restart policy of the design.
const (
	backoffFirst  = 250 * time.Millisecond
	backoffMost   = 30 * time.Second
	backoffReset  = 60 * time.Second // ready for so long: the next wait is the first again
	breakerExits  = 5
	breakerWindow = 60 * time.Second
	breakerPause  = 10 * time.Minute
)

// backoff decides how long to wait before the next start. It has no clock and no chance of its own.
type backoff struct {
	next  time.Duration
	exits []time.Time
}

// ended tells of an unwanted end, or of a start that failed (then readyFor is 0). chance is in [0, 1). broken: the breaker
// opened, and wait is its pause.
func (b *backoff) ended(now time.Time, readyFor time.Duration, chance float64) (wait time.Duration, broken bool) {
	b.exits = slices.DeleteFunc(b.exits, func(t time.Time) bool { return now.Sub(t) >= breakerWindow })
	b.exits = append(b.exits, now)
	if len(b.exits) >= breakerExits {
		b.reset()
		return breakerPause, true
	}
	if b.next == 0 || readyFor >= backoffReset {
		b.next = backoffFirst
	}
	wait = jitter(b.next, chance)
	b.next = min(2*b.next, backoffMost)
	return wait, false
}

// reset forgets the past: after a reload, a restart by hand, or the breaker's pause.
func (b *backoff) reset() { *b = backoff{} }

// jitter spreads d over 80 to 120 percent.
func jitter(d time.Duration, chance float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*chance))
}
