package state

import "time"

const (
	// clockSlack is how far calls may come out of order without the clock having gone back.
	clockSlack = 5 * time.Second
	// clockLeap is how far the wall clock may leap and be believed.
	clockLeap = 400 * 24 * time.Hour
)

// wallClock follows the wall-clock times that calls bring.
type wallClock struct {
	latest time.Time
	// recovered: latest is from the log, so any time after it is believed.
	recovered bool
	// held: the wall clock is implausible and latest is used instead.
	held bool
}

// moment gives the time to work with. A clock that went back takes the old evidence back with it, so that no duration is
// negative and no new evidence looks older than the old; resets stay what they are.
func (s *Store) moment(at time.Time) time.Time {
	at = at.UTC()
	c := &s.clock
	switch forward := at.Sub(c.latest); {
	case c.latest.IsZero():
	case forward < -clockLeap, forward > clockLeap && !c.recovered:
		c.held = true
		return c.latest
	case forward < -clockSlack:
		s.notLaterThan(at)
	case forward < 0:
		return at
	}
	c.latest, c.held, c.recovered = at, false, false
	return at
}

func (s *Store) notLaterThan(at time.Time) {
	for _, a := range s.accounts {
		a.NotLaterThan(at, s.clock.latest)
	}
	for _, c := range s.conversations {
		for _, t := range c.threads {
			if t.lastAccepted.After(at) {
				t.lastAccepted = at
			}
			if t.cadence.At.After(at) {
				t.cadence.At = at
			}
		}
	}
	s.periods.notLaterThan(at)
}
