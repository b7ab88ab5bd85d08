package quota

import "time"

// Clearing says when all that keeps an account away can have cleared.
type Clearing struct {
	// Governing is what clears last, or what no clock clears.
	Governing Blocker
	// Dated is false when only a person can clear it.
	Dated bool
	// At is valid if Dated; Exact when every time behind it is authoritative.
	At    time.Time
	Exact bool
}

// Clearing of the account for the model; ok is false if nothing keeps it away. placing adds what concerns new placements
// only.
func (a *Account) Clearing(model string, placing bool, at time.Time) (c Clearing, ok bool) {
	c = Clearing{Dated: true, Exact: true, At: at}
	take := func(b Blocker) bool {
		switch {
		case !c.Dated:
		case !b.Dated():
			c.Governing, c.Dated, c.Exact = b, false, false
		default:
			c.Exact = c.Exact && !b.ClearsAt.IsZero()
			if !ok || b.End().After(c.At) {
				c.Governing, c.At = b, b.End()
			}
		}
		ok = true
		return true
	}
	a.eachBlocker(model, placing, at, take)
	if a.Throttle.In(at) && (a.Throttle.Hinted || !ok) {
		take(a.Throttle.blocker())
	}
	// What may be over at any moment governs only where nothing else keeps the account away.
	if a.Credential.In(at) && !ok {
		take(a.Credential.blocker())
	}
	if placing && a.Network.In(at) && !ok {
		take(a.Network.blocker())
	}
	return c, ok
}

// blocker gives a cooldown the form of a blocker, for forecasts and explanations.
func (c Cooldown) blocker() Blocker {
	b := Blocker{Cause: c.Cause, ObservedAt: c.Since}
	if c.Hinted {
		b.ClearsAt = c.Until
	}
	return b
}

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
