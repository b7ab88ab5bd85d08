package plugin

import (
	"context"
	"time"
)

// moment is one point in time on two clocks.
type moment struct {
	// wall goes on while the machine sleeps.
	wall time.Time
	// awake stands still meanwhile, as Go's timers do.
	awake time.Duration
}

// moments returns the system's clocks.
func moments() func() moment {
	began := time.Now()
	return func() moment {
		now := time.Now()
		// Round strips the monotonic reading, which Sub would prefer.
		return moment{wall: now.Round(0), awake: now.Sub(began)}
	}
}

// watchWakeups looks now and then whether the machine slept, and calls woke after it did: the wall clock then went ahead of
// the other one. A wall clock that was set ahead looks the same; one that was set back does not.
func watchWakeups(ctx context.Context, t timing, now func() moment, woke func()) {
	ticker := time.NewTicker(t.wakeupEvery)
	defer ticker.Stop()
	last := now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		at := now()
		if at.wall.Sub(last.wall)-(at.awake-last.awake) > t.wakeupSuspects {
			woke()
		}
		last = at
	}
}
