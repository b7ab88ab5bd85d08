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

// restartPolicy decides how long to wait before the next start. It has no clock and no chance of its own.
type restartPolicy struct {
	next  time.Duration
	exits []time.Time
}

// ended tells of an unwanted end, or of a start that failed (then readyFor is 0). chance is in [0, 1). broken: the breaker
// opened, and wait is its pause.
func (p *restartPolicy) ended(now time.Time, readyFor time.Duration, chance float64) (wait time.Duration, broken bool) {
	p.exits = slices.DeleteFunc(p.exits, func(t time.Time) bool { return now.Sub(t) >= breakerWindow })
	p.exits = append(p.exits, now)
	if len(p.exits) >= breakerExits {
		p.exits, p.next = nil, backoffFirst
		return breakerPause, true
	}
	if p.next == 0 || readyFor >= backoffReset {
		p.next = backoffFirst
	}
	wait = jitter(p.next, chance)
	p.next = min(2*p.next, backoffMost)
	return wait, false
}

// reset forgets the past: after a reload or a restart by hand.
func (p *restartPolicy) reset() { *p = restartPolicy{} }

// retrying reports whether something ended that is to be started again.
func (p *restartPolicy) retrying() bool { return p.next > 0 }

// jitter spreads d over 75 to 100 percent.
func jitter(d time.Duration, chance float64) time.Duration {
	return time.Duration(float64(d) * (0.75 + 0.25*chance))
}
