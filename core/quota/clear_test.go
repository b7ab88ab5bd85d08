package quota

import (
	"testing"
	"time"
)

func TestWhatClearsBlockers(t *testing.T) {
	reset := start.Add(2 * time.Hour)
	quota := Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}
	shown98 := func(a *Account) { a.seeAll(98, 20, 20); a.refuse(quota, "m") }
	for name, c := range map[string]struct {
		prepare func(*Account)
		then    func(*Account)
		at      time.Time
		blocked bool
	}{
		"the reset":               {shown98, nil, reset, false},
		"not before the reset":    {shown98, nil, reset.Add(-time.Millisecond), true},
		"not a shown 98":          {shown98, func(a *Account) { a.see("5h", 98, reset, time.Minute) }, start.Add(time.Minute), true},
		"not a shown 97 after 98": {shown98, func(a *Account) { a.see("5h", 97, reset, time.Minute) }, start.Add(time.Minute), true},
		"five less than was shown, in steps within one instance": {shown98, func(a *Account) {
			for i := range 6 {
				a.see("5h", 98-float64(i), reset, time.Duration(i+1)*time.Minute)
			}
		}, start.Add(time.Hour), false},
		"a fall of more than one is another instance": {shown98, func(a *Account) { a.see("5h", 96, reset, time.Minute) }, start.Add(time.Minute), false},
		"another instance":                            {shown98, func(a *Account) { a.see("5h", 99, reset.Add(time.Hour), time.Minute) }, start.Add(time.Minute), false},
		"not an older read": {shown98, func(a *Account) {
			a.Observe([]Reading{a.reading("5h", 0, reset, -time.Second)}, start.Add(time.Minute))
		}, start.Add(time.Minute), true},
		"not a read of another window": {shown98, func(a *Account) { a.see("weekly", 0, start.Add(50*time.Hour), time.Minute) }, start.Add(time.Minute), true},
		"not a failed read":            {shown98, func(a *Account) { a.Observe(nil, start.Add(time.Minute)) }, start.Add(time.Minute), true},
		"the bound of a missing reset": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m") }, nil, start.Add(fiveHours), false},
		"an unnamed one by a complete read with room": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota}, "m") },
			func(a *Account) { a.readAll(90, 90, 90, time.Minute) }, start.Add(time.Minute), false},
		"an unnamed one not by an incomplete read": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota}, "m") },
			func(a *Account) { a.see("5h", 0, reset, time.Minute) }, start.Add(time.Minute), true},
		"an unnamed one not by a read with one window above 90": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota}, "m") },
			func(a *Account) { a.readAll(91, 10, 10, time.Minute) }, start.Add(time.Minute), true},
		"an unnamed one not by a complete read from before": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota}, "m") },
			func(a *Account) { a.readAll(1, 1, 1, -time.Minute) }, start.Add(time.Minute), true},
		"signed out: not by time": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseAuth}, "m") }, nil, start.Add(1000 * time.Hour), true},
		"signed out: not by a quota read": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseAuth}, "m") },
			func(a *Account) { a.readAll(0, 0, 0, time.Minute) }, start.Add(time.Minute), true},
		"signed out: by a sign-in": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseAuth}, "m") }, func(a *Account) { a.Blockers, _ = a.Without(CauseAuth) }, start, false},
		"not entitled: by a day": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, nil, start.Add(24 * time.Hour), false},
		"not entitled: not earlier": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, nil, start.Add(23 * time.Hour), true},
		"not entitled: by a change of configuration": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, func(a *Account) { a.Blockers, _ = a.Without(CauseNotEntitled) }, start, false},
		"both windows: not by the reset of the first": {
			func(a *Account) {
				shown98(a)
				a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: start.Add(50 * time.Hour)}, "m")
			}, nil, reset, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			if c.then != nil {
				c.then(a)
			}
			a.Settle(c.at)
			if got := a.Blocked("m", false, c.at); got != c.blocked {
				t.Errorf("blocked = %v; blockers %+v", got, a.Blockers)
			}
		})
	}
}

func (a *Account) readAll(short, weekly, opus float64, after time.Duration) {
	a.Observe([]Reading{
		a.reading("5h", short, start.Add(2*time.Hour), after),
		a.reading("weekly", weekly, start.Add(50*time.Hour), after),
		a.reading("weekly:opus", opus, start.Add(50*time.Hour), after),
	}, start.Add(max(after, 0)))
}

func TestBoundWithoutAReadLeavesTheWindowUnknown(t *testing.T) {
	a := newAccount()
	a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
	a.Settle(start.Add(fiveHours))
	if got := a.Window("5h").State(start.Add(fiveHours)); got != StateUnknown {
		t.Errorf("state = %s", got)
	}
}

func TestReadWithResetDatesTheBlocker(t *testing.T) {
	a := newAccount()
	a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
	reset := start.Add(3 * time.Hour)
	a.see("5h", 100, reset, time.Minute)
	if len(a.Blockers) != 1 || !a.Blockers[0].ClearsAt.Equal(reset) {
		t.Errorf("blockers = %+v", a.Blockers)
	}
}
