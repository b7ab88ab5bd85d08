package quota

import "time"

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

// blocker gives a cooldown the form of a blocker, for forecasts and explanations.
func (c Cooldown) blocker() Blocker {
	b := Blocker{Cause: c.Cause, ObservedAt: c.Since}
	if c.Hinted {
		b.ClearsAt = c.Until
	}
	return b
}

// Reached notes that an attempt that began at that time got an answer: trouble on the way seen before it began is over.
func (a *Account) Reached(began time.Time) {
	if !began.Before(a.Network.Since) {
		a.Network = Cooldown{}
	}
	if !began.Before(a.Credential.Since) {
		a.Credential = Cooldown{}
	}
}

// CredentialCame notes that the credential that did not come in time is here now.
func (a *Account) CredentialCame() { a.Credential = Cooldown{} }

// Paused reports whether a cooldown makes also the sessions that live here go elsewhere for a request.
func (a *Account) Paused(at time.Time) bool { return a.Throttle.In(at) || a.Credential.In(at) }

// Cooling reports whether any cooldown keeps new placements away.
func (a *Account) Cooling(at time.Time) bool { return a.Paused(at) || a.Network.In(at) }

// Unreachable notes a connection failure: a short pause for new placements once it repeats.
func (a *Account) Unreachable(at time.Time) { a.Network = a.Network.unreachable(at) }

// Trouble is what was in the way when the account was last tried and left no blocker: the network, or a credential that
// did not come. Empty if nothing was, or if that is a while ago.
func (a *Account) Trouble(at time.Time) Cause {
	for _, c := range []Cooldown{a.Credential, a.Network} {
		if c.remembered(at) {
			return c.Cause
		}
	}
	return ""
}

// Cooldowns lists the pauses in force at that time.
func (a *Account) Cooldowns(at time.Time) []Cooldown {
	var pauses []Cooldown
	for _, c := range []Cooldown{a.Throttle, a.Credential, a.Network} {
		if c.In(at) {
			pauses = append(pauses, c)
		}
	}
	return pauses
}
