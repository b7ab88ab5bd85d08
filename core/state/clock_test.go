package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// runs lets the clock run on steadily.
func (f *fixture) runs(d time.Duration) {
	f.t.Helper()
	for range d / clockStep {
		f.pass(clockStep)
	}
}

func TestSleepAcrossAReset(t *testing.T) {
	f := open(t, "a")
	f.reject(f.tryAny(), quota.Rejection{Cause: quota.CauseQuota, WindowID: "5h", ClearsAt: f.now.Add(2 * time.Hour)})
	f.now = f.now.Add(9 * time.Hour)
	_, d := f.ask("claude/s", "m")
	if !d.Placed {
		t.Error("the five-hour blocker outlived its reset")
	}
	if s := f.Accounts(f.now)[0].Windows[0]; s.State != quota.ViewRolled || !s.Estimated {
		t.Errorf("window shown as %s, estimated %v", s.State, s.Estimated)
	}
}

func TestSleepAcrossAWeekWithoutAReset(t *testing.T) {
	f := open(t, "a")
	f.read("a", 10, 50)
	f.reject(f.tryAny(), quota.Rejection{Cause: quota.CauseQuota, WindowID: "other"})
	f.pass(8 * 24 * time.Hour)
	_, d := f.ask("claude/s", "m")
	if !d.Placed || d.Score < 0 {
		t.Errorf("placed %v after the bound", d.Placed)
	}
}

func TestAClockThatGoesBack(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	reset := f.Accounts(f.now)[0].Windows[0].ResetsAt
	f.pass(-time.Hour)
	if got := f.Accounts(f.now)[0].Windows[0]; !got.ResetsAt.Equal(reset) || got.ObservedAt.After(f.now) {
		t.Errorf("resets at %v, observed at %v", got.ResetsAt, got.ObservedAt)
	}
	f.read("a", 55, 55)
	if got := *f.Accounts(f.now)[0].Windows[0].UsedPercent; got != 55 {
		t.Errorf("used = %v: new evidence looked older than the old", got)
	}
	f.pass(time.Minute)
	f.serve("a", "claude/s", "m")
	if d := f.demand; d.Hours < 0 || d.Hours > 0.1 {
		t.Errorf("demand = %+v", d)
	}
	f.must(f.Close())
	f.recover()
	f.lives("a", "claude/s", "m")
}

func TestAnImplausibleClockIsNotBelieved(t *testing.T) {
	for name, d := range map[string]time.Duration{
		"1970": time.Unix(0, 0).Sub(start),
		"2099": 2_300_000_000 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			f.serve("a", "claude/s", "m")
			f.reject(f.tryAny(), quota.Rejection{Cause: quota.CauseQuota, WindowID: "weekly", ClearsAt: f.now.Add(100 * time.Hour)})
			good := f.now
			f.pass(d)
			if !f.Stats().ClockHeld {
				t.Error("the clock is believed")
			}
			if _, d := f.ask("claude/s", "m"); d.Placed {
				t.Error("a blocker was cleared")
			}
			f.lives("a", "claude/s", "m")
			f.now = good.Add(101 * time.Hour)
			if _, d := f.ask("claude/s", "m"); !d.Placed || f.Stats().ClockHeld {
				t.Error("the clock is not believed any more")
			}
		})
	}
}

func TestAClockThatWasWrongAndIsPutRight(t *testing.T) {
	future := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, between := range map[string]func(*fixture){
		"while the daemon runs":            func(*fixture) {},
		"while the daemon is stopped":      func(f *fixture) { f.must(f.Close()); f.recover() },
		"while the daemon has been killed": (*fixture).recover,
	} {
		t.Run(name, func(t *testing.T) {
			f := openAt(t, future, "a", "b")
			f.serve("a", "claude/s", "m")
			f.serve("a", "claude/other", "m")
			f.reject(f.try("a", "claude/more", "m"), weekGone)
			f.pass(2 * time.Minute)
			f.now = start
			between(f)
			f.pass(time.Second)
			if !f.Stats().ClockHeld {
				t.Error("it is believed at once")
			}
			f.runs(clockTrial)
			if f.Stats().ClockHeld {
				t.Fatal("it is never believed")
			}
			f.read("a", 55, 55)
			if got := *f.Accounts(f.now)[0].Windows[0].UsedPercent; got != 55 {
				t.Errorf("used = %v: new evidence looked older than the old", got)
			}
			f.pass(time.Minute)
			f.recover()
			f.pass(time.Second)
			if f.Stats().ClockHeld {
				t.Error("the wrong time is still in the log")
			}
			f.pass(week)
			f.serve("a", "claude/s", "m")
			f.pass(DefaultIdle + time.Hour)
			f.lives("", "claude/other", "m")
			f.lives("", "claude/s", "m")
		})
	}
}

func TestAnImplausibleClockIsBelievedOnceItRunsSteadily(t *testing.T) {
	for name, c := range map[string]struct {
		at       time.Time
		runs     func(*fixture)
		believed bool
	}{
		"a machine that slept for years": {start.AddDate(5, 0, 0), func(f *fixture) { f.runs(clockTrial) }, true},
		"for a while":                    {start.AddDate(5, 0, 0), func(f *fixture) { f.runs(clockTrial / 2) }, false},
		"a clock that leaps about": {start.AddDate(5, 0, 0), func(f *fixture) {
			for range 20 {
				f.runs(clockTrial / 2)
				f.pass(time.Hour)
			}
		}, false},
		"before this program was written": {time.Unix(3600, 0), func(f *fixture) { f.runs(2 * clockTrial) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			f.now = c.at
			f.pass(0)
			c.runs(f)
			if f.Stats().ClockHeld == c.believed {
				t.Errorf("believed %v", c.believed)
			}
		})
	}
}

func TestEvidenceOfAFutureThatTheLogHoldsIsTakenBack(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(3 * time.Hour)
	f.read("a", 40, 40)
	f.must(f.Close())
	f.now = start.Add(time.Minute)
	f.recover()
	f.read("a", 55, 55)
	if got := *f.Accounts(f.now)[0].Windows[0].UsedPercent; got != 55 {
		t.Errorf("used = %v: new evidence looked older than the old", got)
	}
}

func TestAFirstStartWithoutAClockGoesOn(t *testing.T) {
	f := openAt(t, time.Unix(60, 0), "a")
	f.serve("a", "claude/s", "m")
	f.now = start
	f.pass(0)
	if f.Stats().ClockHeld {
		t.Error("the right time is not believed")
	}
}

func TestALongTimeSwitchedOffIsBelieved(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(time.Second)
	f.now = f.now.Add(3 * 366 * 24 * time.Hour)
	f.recover()
	f.pass(time.Second)
	if f.Stats().ClockHeld {
		t.Error("the clock is not believed")
	}
	f.lives("", "claude/s", "m") // idle for years
}

func TestEqualTimesKeepTheirOrder(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	if _, err := f.MoveSession("claude/s", id("b"), f.now); err != nil {
		t.Fatal(err)
	}
	f.recover()
	f.lives("b", "claude/s", "m")
}

func TestTimesAreStoredInUTC(t *testing.T) {
	f := open(t, "a")
	f.now = f.now.In(time.FixedZone("far", 14*3600))
	f.serve("a", "claude/s", "m")
	view, _ := f.Session("claude/s")
	if view.Bindings[0].BoundAt.Location() != time.UTC || !view.Bindings[0].BoundAt.Equal(start) {
		t.Errorf("bound at %v", view.Bindings[0].BoundAt)
	}
}

func TestThirtyDaysNeitherDriftNorGrow(t *testing.T) {
	f := open(t, "a", "b")
	f.attempts = 0
	var live, marks int
	for day := range 30 {
		for hour := range 24 {
			f.read("a", float64(hour), float64(day))
			f.read("b", float64(hour), float64(day))
			for i := range 5 {
				attempt, d := f.ask(fmt.Sprintf("claude/%d-%d", day, i), "m")
				if !d.Placed {
					t.Fatalf("day %d, hour %d: nothing placed", day, hour)
				}
				f.accept(attempt)
				f.pass(time.Minute)
				f.end(attempt)
			}
			f.pass(55 * time.Minute)
		}
		live = max(live, len(f.live))
		marks = max(marks, len(f.periods.marks))
	}
	for _, a := range f.accounts {
		if a.InFlight.Total() != 0 || a.LiveSessions != 0 || a.Unconfirmed != 0 {
			t.Errorf("%s has %d in flight, %d live", a.ID, a.InFlight.Total(), a.LiveSessions)
		}
		if k := a.Window("5h").Kappa("m"); k < 0.0001 || k > 5 {
			t.Errorf("κ drifted to %v", k)
		}
	}
	if live > 10 || marks > 300 || len(f.touched) > 10 {
		t.Errorf("%d sessions, %d marks, %d touched rows in memory", live, marks, len(f.touched))
	}
}
