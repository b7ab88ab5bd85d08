package quota

import (
	"testing"
	"time"
)

func TestNoRequestCountsTwice(t *testing.T) {
	reset := start.Add(4 * time.Hour)
	a := newAccount()
	a.see("5h", 20, reset, 0)
	w := a.Window("5h")
	a.Begin("m")
	near(t, "used with one in flight", a.Used(w), 20)
	near(t, "reserved", a.Load(w, "m", 1, start).Reserved, 0.5)
	a.Complete("m", start.Add(10*time.Second))
	near(t, "used after it completed", a.Used(w), 20.5)
	near(t, "reserved after it completed", a.Load(w, "m", 1, start).Reserved, 0)
	a.Observe([]Reading{a.reading("5h", 20, reset, 5*time.Second)}, start.Add(20*time.Second))
	near(t, "used when a read from before it completed arrives late", a.Used(w), 20.5)
	a.see("5h", 21, reset, 15*time.Second)
	near(t, "used when a read includes it", a.Used(w), 21)
	a.Observe([]Reading{a.reading("5h", 20, reset, 8*time.Second)}, start.Add(30*time.Second))
	near(t, "used when an older read arrives", a.Used(w), 21)
}

func TestUsageLagKeepsYoungCompletionsOutOfTheObservation(t *testing.T) {
	a := newAccount(time.Minute)
	a.work("m", 1, start.Add(-90*time.Second))
	a.work("m", 1, start.Add(-30*time.Second))
	a.see("5h", 20, start.Add(time.Hour), 0)
	near(t, "used", a.Used(a.Window("5h")), 20.5)
}

func TestModelScopedWindowsCountTheirModelsOnly(t *testing.T) {
	a := newAccount()
	a.see("weekly:opus", 40, start.Add(time.Hour), 0)
	a.work("sonnet", 50, start.Add(time.Minute))
	near(t, "used of the scoped window", a.Used(a.Window("weekly:opus")), 40)
}
