package plugin

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// machine is a pair of clocks that go with the timers of a test. Sleep puts the wall's ahead.
type machine struct {
	began time.Time
	slept atomic.Int64
}

func newMachine() *machine { return &machine{began: time.Now()} }

func (m *machine) now() moment {
	now := time.Now()
	return moment{wall: now.Round(0).Add(time.Duration(m.slept.Load())), awake: now.Sub(m.began)}
}

// passes lets the machine sleep and then be awake.
func (m *machine) passes(asleep, awake time.Duration) {
	m.slept.Add(int64(asleep))
	time.Sleep(awake)
	synctest.Wait()
}

func TestSleepIsToldFromTimeThatPasses(t *testing.T) {
	suspects, every := designTiming().wakeupSuspects, designTiming().wakeupEvery
	cases := []struct {
		name          string
		asleep, awake time.Duration
		want          int
	}{
		{"awake for a day", 0, 24 * time.Hour, 0},
		{"slept for an hour", time.Hour, every, 1},
		{"dozed", suspects, every, 0},
		{"slept just long enough to matter", suspects + 1, every, 1},
		{"clock set back by an hour", -time.Hour, every, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, woken := newMachine(), 0
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go watchWakeups(ctx, designTiming(), m.now, func() { woken++ })
				synctest.Wait()
				m.passes(c.asleep, c.awake)
				if woken != c.want {
					t.Errorf("woken %d times, want %d", woken, c.want)
				}
				m.passes(0, 10*every)
				if woken != c.want {
					t.Errorf("woken %d times a while later, want %d", woken, c.want)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestMachineThatSleptProbesEveryAccountAtOnce(t *testing.T) {
	r := &reading{}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		m, every := newMachine(), designTiming().wakeupEvery
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go watchWakeups(ctx, designTiming(), m.now, d.client.probeAll)
		synctest.Wait()
		m.passes(0, every)
		before := r.count()
		m.passes(8*time.Hour, every)
		if n := r.count() - before; n != 1 {
			t.Errorf("%d probes after the machine woke, want 1", n)
		}
		m.passes(0, every)
		if n := r.count() - before; n != 1 {
			t.Errorf("%d probes a while later, want no more", n)
		}
		cancel()
		synctest.Wait()
	})
}

func TestClocksOfTheSystemAgreeWhileItIsAwake(t *testing.T) {
	now := moments()
	first := now()
	second := now()
	if first.wall.String() != first.wall.Round(0).String() {
		t.Error("the wall clock holds a monotonic reading")
	}
	if second.awake < first.awake || second.wall.Before(first.wall.Add(-time.Minute)) {
		t.Errorf("from %v to %v", first, second)
	}
}
