package quota

import (
	"testing"
	"time"
)

// refuse rejects an attempt with that model at start.
func (a *Account) refuse(r Rejection, model string) {
	a.Reject(r, model, start.Add(-time.Second), start)
}

func TestBlockersOfRejections(t *testing.T) {
	reset := start.Add(2 * time.Hour)
	for name, c := range map[string]struct {
		prepare   func(*Account)
		rejection Rejection
		window    string
		clears    time.Time
		notLater  time.Time
	}{
		"named, with its reset": {
			nil, Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "5h", reset, start.Add(fiveHours)},
		"named, its reset known from telemetry": {
			func(a *Account) { a.see("5h", 98, reset, -time.Minute) },
			Rejection{Cause: CauseQuota, WindowID: "5h"}, "5h", reset, start.Add(fiveHours)},
		"named without a reset is bounded by the window's length": {
			nil, Rejection{Cause: CauseQuota, WindowID: "5h"}, "5h", time.Time{}, start.Add(fiveHours)},
		"a reset that the length rules out is not believed": {
			nil, Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: start.Add(week)}, "5h", time.Time{}, start.Add(fiveHours)},
		"unnamed, inferred from its reset": {
			func(a *Account) { a.see("weekly", 50, start.Add(50*time.Hour), -time.Minute) },
			Rejection{Cause: CauseQuota, ClearsAt: start.Add(50*time.Hour + time.Minute)}, "weekly", start.Add(50*time.Hour + time.Minute), start.Add(week)},
		"unnamed, inferred from the one window that can be full": {
			func(a *Account) { a.seeAll(97, 50, 50) }, Rejection{Cause: CauseQuota}, "5h", reset, start.Add(fiveHours)},
		"unnamed, not inferred from a window below 96": {
			func(a *Account) { a.seeAll(95, 50, 50) }, Rejection{Cause: CauseQuota}, "", time.Time{}, reset},
		"unnamed, not inferred when two windows can be full": {
			func(a *Account) { a.seeAll(97, 91, 50) }, Rejection{Cause: CauseQuota}, "", time.Time{}, reset},
		"unnamed, not inferred when another window is unknown": {
			func(a *Account) { a.see("5h", 99, reset, -time.Minute) }, Rejection{Cause: CauseQuota}, "", time.Time{}, reset},
		"unnamed and nothing known: bounded by the shortest length": {
			nil, Rejection{Cause: CauseQuota}, "", time.Time{}, start.Add(fiveHours)},
		"unnamed with a reset of no known window": {
			nil, Rejection{Cause: CauseQuota, ClearsAt: start.Add(30 * time.Hour)}, "", start.Add(30 * time.Hour), start.Add(fiveHours)},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			if c.prepare != nil {
				c.prepare(a)
			}
			a.refuse(c.rejection, "sonnet")
			if len(a.Blockers) != 1 {
				t.Fatalf("%d blockers", len(a.Blockers))
			}
			b := a.Blockers[0]
			if b.Window != c.window || !b.ClearsAt.Equal(c.clears) || !b.NoLaterThan.Equal(c.notLater) {
				t.Errorf("blocker of %q, clears %v, no later than %v", b.Window, b.ClearsAt, b.NoLaterThan)
			}
		})
	}
}

// seeAll shows the three windows a minute before start.
func (a *Account) seeAll(short, weekly, opus float64) {
	a.see("5h", short, start.Add(2*time.Hour), -time.Minute)
	a.see("weekly", weekly, start.Add(50*time.Hour), -time.Minute)
	a.see("weekly:opus", opus, start.Add(50*time.Hour), -time.Minute)
}

func TestScopesOfBlockers(t *testing.T) {
	reset := start.Add(50 * time.Hour)
	for name, c := range map[string]struct {
		prepare func(*Account)
		sonnet  bool
		opus    bool
	}{
		"a window of one model blocks that model": {
			func(a *Account) {
				a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly:opus", ClearsAt: reset}, "opus")
			}, false, true},
		"a window of all models blocks all": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: reset}, "opus") }, true, true},
		"a rejection of one model blocks that model": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "opus"}, "opus") }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			if got := a.Blocked("sonnet", false, start); got != c.sonnet {
				t.Errorf("sonnet blocked = %v", got)
			}
			if got := a.Blocked("opus", false, start); got != c.opus {
				t.Errorf("opus blocked = %v", got)
			}
		})
	}
}

func TestShownFullKeepsOnlyPlacementsAway(t *testing.T) {
	reset := start.Add(2 * time.Hour)
	exhausted := func(source Source) func(*Account) {
		return func(a *Account) {
			r := a.reading("5h", 0, reset, 0)
			r.State, r.HasUsed, r.Source = Exhausted, false, source
			a.Observe([]Reading{r}, start)
		}
	}
	kind := func(kind Kind, state ReportedState) func(*Account) {
		return func(a *Account) {
			d := Declaration{ID: "other", Kind: kind}
			a.Observe([]Reading{{Declaration: d, UsedPercent: 100, HasUsed: true, State: state, Source: SourceOfficialClient, ObservedAt: start}}, start)
		}
	}
	for name, c := range map[string]struct {
		prepare        func(*Account)
		at             time.Time
		bound, placing bool
	}{
		"100 % shown":                      {func(a *Account) { a.see("5h", 100, reset, 0) }, start, false, true},
		"99 % shown":                       {func(a *Account) { a.see("5h", 99, reset, 0) }, start, false, false},
		"until its reset":                  {func(a *Account) { a.see("5h", 100, reset, 0) }, reset, false, false},
		"until a later read below":         {func(a *Account) { a.see("5h", 100, reset, 0); a.see("5h", 99.5, reset, time.Minute) }, start.Add(time.Minute), false, false},
		"without a reset until its length": {func(a *Account) { a.see("5h", 100, time.Time{}, 0) }, start.Add(fiveHours + 1), false, false},
		"exhausted by the official client": {exhausted(SourceOfficialClient), start, false, true},
		"exhausted by an answer's headers moves sessions as well": {exhausted(SourceResponseHeader), start, true, true},
		"overage that the user allowed":                           {func(a *Account) { a.AllowOverage = true; exhausted(SourceResponseHeader)(a) }, start, false, false},
		"spent credits leave the limits as they are":              {kind(KindCredit, Observed), start, false, false},
		"a full context is one conversation's":                    {kind(KindContext, Observed), start, false, false},
		"no context keeps an account's work away":                 {kind(KindContext, Exhausted), start, false, false},
		"credits that are said to be exhausted do":                {kind(KindCredit, Exhausted), start, false, true},
		"a limit without a length is one all the same":            {kind(KindIndividual, Observed), start, false, true},
		"a real rejection blocks all the same": {
			func(a *Account) {
				a.AllowOverage = true
				a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
			}, start, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			a.Settle(c.at)
			if got := a.Blocked("m", false, c.at); got != c.bound {
				t.Errorf("bound sessions blocked = %v", got)
			}
			if got := a.Blocked("m", true, c.at); got != c.placing {
				t.Errorf("placements blocked = %v", got)
			}
		})
	}
}

func TestAClockThatGoesBackLeavesNoBlockerBeyondItsWindow(t *testing.T) {
	reset := start.Add(3 * time.Hour)
	for name, c := range map[string]struct {
		back     time.Duration
		clearsAt time.Time
	}{
		"a little": {2 * time.Hour, reset},
		"by years": {70 * 366 * 24 * time.Hour, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
			at := start.Add(-c.back)
			a.NotLaterThan(at, start)
			b, w := a.Blockers[0], a.Window("5h")
			if !b.ObservedAt.Equal(at) || !b.ClearsAt.Equal(c.clearsAt) || !b.NoLaterThan.Equal(at.Add(w.Length)) || !w.ResetsAt.Equal(c.clearsAt) {
				t.Errorf("at %v the window resets at %v, and %+v", at, w.ResetsAt, b)
			}
		})
	}
}

func TestBlockersAreBounded(t *testing.T) {
	a := newAccount()
	a.refuse(Rejection{Cause: CauseAuth}, "m")
	for i := range 10 * MaxBlockers {
		a.refuse(Rejection{Cause: CauseNotEntitled, Model: string(rune('A' + i))}, "m")
	}
	if len(a.Blockers) != MaxBlockers || !a.SignedOut() {
		t.Errorf("%d blockers, signed out %v", len(a.Blockers), a.SignedOut())
	}
}
