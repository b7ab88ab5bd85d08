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
	take := func(b Blocker) {
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
	}
	for b := range a.blocking(model, placing, at) {
		take(b)
	}
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
