package plugin

import (
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/clock"
)

func TestAChangedIntervalHoldsFromTheNextProbeOn(t *testing.T) {
	var h Host
	c := &Client{clock: clock.Wall{}, timing: designTiming(), refresh: h.interval, chance: func() float64 { return 0.5 }}
	p := &probe{client: c, account: &account{}}
	p.account.used.Store(c.clock.Now().Unix()) // it serves, so it is read as often as any
	for _, interval := range []time.Duration{45 * time.Second, 30 * time.Second, 5 * time.Minute} {
		h.SetRefresh(interval)
		if got, want := p.interval(0), jitter(interval, 0.5); got != want {
			t.Errorf("after SetRefresh(%v) the next probe is in %v, want %v", interval, got, want)
		}
	}
}
