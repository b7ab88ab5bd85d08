package state

import "time"

const (
	// clockSlack is how far calls may come out of order without the clock having gone back.
	clockSlack = 5 * time.Second
	// clockLeap is how far the wall clock may leap and be believed at once.
	clockLeap = 400 * 24 * time.Hour
	// clockTrial is how long it must run steadily at a time that it leapt to before it is believed all the same, and
	// clockStep the longest pause between two calls in which it does.
	clockTrial = 10 * time.Minute
	clockStep  = time.Minute
	// clockFloor is the beginning of 2026 in Unix seconds: it cannot be earlier, this program is not older.
	clockFloor = 1_767_225_600
)

// wallClock follows the wall-clock times that calls bring.
type wallClock struct {
	latest time.Time
	// recovered: latest is from the log, so any time after it is believed.
	recovered bool
	// held: the wall clock is implausible and latest is used instead.
	held bool
	// since is the first and last the newest of the implausible times that followed each other steadily.
	since, last time.Time
}

// moment gives the time to work with. A clock that went back takes the old evidence back with it, so that no duration is
// negative and no new evidence looks older than the old; resets stay what they are. So does one that was ahead when the log
// was written.
func (s *Store) moment(at time.Time) time.Time {
	at = at.UTC() // without the monotonic reading, which knows nothing of the wall clock
	c := &s.clock
	if !c.believes(at) {
		c.held = true
		return c.latest
	}
	latest := at
	switch forward := at.Sub(c.latest); {
	case c.recovered, forward < -clockSlack:
		s.notLaterThan(at)
	case forward < 0:
		latest = c.latest
	}
	s.clock = wallClock{latest: latest}
	return at
}

func (c *wallClock) believes(at time.Time) bool {
	forward := at.Sub(c.latest)
	switch {
	case c.latest.Unix() < clockFloor: // nothing to compare with
		return true
	case at.Unix() < clockFloor:
		return false
	case forward >= -clockLeap && (forward <= clockLeap || c.recovered):
		return true
	}
	if step := at.Sub(c.last); step < -clockSlack || step > clockStep {
		c.since = at
	}
	c.last = at
	return at.Sub(c.since) >= clockTrial
}

func (s *Store) notLaterThan(at time.Time) {
	for _, a := range s.accounts {
		a.NotLaterThan(at, s.clock.latest)
		a.writing.dirty = true
	}
	for _, live := range s.live {
		for _, m := range live.models {
			if m.lastAccepted.After(at) {
				m.lastAccepted = at
			}
			if m.cadence.At.After(at) {
				m.cadence.At = at
			}
		}
	}
	s.periods.notLaterThan(at)
}
