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
			func(a *Account) { a.refuse(Rejection{Cause: CauseAuth}, "m") }, func(a *Account) { a.ClearAuth() }, start, false},
		"not entitled: by a day": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, nil, start.Add(24 * time.Hour), false},
		"not entitled: not earlier": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, nil, start.Add(23 * time.Hour), true},
		"not entitled: by a change of configuration": {
			func(a *Account) { a.refuse(Rejection{Cause: CauseNotEntitled, Model: "m"}, "m") }, func(a *Account) { a.ClearEntitlement() }, start, false},
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

func TestClearing(t *testing.T) {
	reset, weekly := start.Add(2*time.Hour), start.Add(50*time.Hour)
	for name, c := range map[string]struct {
		prepare      func(*Account)
		dated, exact bool
		at           time.Time
		window       string
	}{
		"the later of two": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: weekly}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
		}, true, true, weekly, "weekly"},
		"a bound is not exact": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
		}, true, false, start.Add(fiveHours), "5h"},
		"an earlier bound is not exact either": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: weekly}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
		}, true, false, weekly, "weekly"},
		"a sign-in has no date": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseAuth}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
		}, false, false, start, ""},
		"an entitlement has no date": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseNotEntitled}, "m")
		}, false, false, start, ""},
		"a pause that the provider asks for has one": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle, RetryAfter: 5 * time.Second}, "m")
		}, true, true, start.Add(5 * time.Second), ""},
		"a pause that we guessed has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle}, "m")
		}, false, false, start, ""},
		"nor has one that we cut short": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle, RetryAfter: 100 * time.Hour}, "m")
		}, false, false, start, ""},
		"the network has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseNetwork}, "m")
			a.refuse(Rejection{Cause: CauseNetwork}, "m")
		}, false, false, start, ""},
		"a credential that did not come has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseCredential}, "m")
		}, false, false, start, ""},
		"trouble on the way to a spent account takes its date not away": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
			for _, cause := range []Cause{CauseNetwork, CauseNetwork, CauseCredential, CauseThrottle} {
				a.refuse(Rejection{Cause: cause}, "m")
			}
		}, true, true, reset, "5h"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			got, blocked := a.Clearing("m", true, start)
			if !blocked || got.Dated != c.dated || got.Exact != c.exact || !got.At.Equal(c.at) || got.Governing.Window != c.window {
				t.Errorf("clearing = %+v", got)
			}
		})
	}
}

func TestCooldowns(t *testing.T) {
	throttle := func(hint time.Duration) time.Duration {
		return throttled(Rejection{RetryAfter: hint}, start).Until.Sub(start)
	}
	if throttle(0) != 30*time.Second || throttle(7*time.Second) != 7*time.Second || throttle(100*time.Hour) != time.Hour {
		t.Errorf("pauses are %v, %v, %v", throttle(0), throttle(7*time.Second), throttle(100*time.Hour))
	}
	for _, c := range []struct {
		name string
		fail func(Cooldown, time.Time) Cooldown
		want []time.Duration
	}{
		{"network", Cooldown.unreachable,
			[]time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}},
		{"credential", Cooldown.withoutCredential, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 2 * time.Minute}},
	} {
		var pause Cooldown
		for i, want := range c.want {
			pause = c.fail(pause, start)
			if got := max(pause.Until.Sub(start), 0); got != want {
				t.Errorf("%s: pause after failure %d = %v, want %v", c.name, i+1, got, want)
			}
		}
		later := start.Add(troubleMemory + 1)
		if got := c.fail(pause, later); got.Failures != 1 {
			t.Errorf("%s: after a while %d failures in a row", c.name, got.Failures)
		}
	}
}

func TestTroubleOnTheWayEndsWithAnAnswer(t *testing.T) {
	for _, cause := range []Cause{CauseNetwork, CauseCredential} {
		a := newAccount()
		a.refuse(Rejection{Cause: cause}, "m")
		if got := a.Trouble(start); got != cause {
			t.Errorf("trouble = %q, want %q from the first failure on", got, cause)
		}
		a.Reached(start.Add(-time.Second))
		if a.Trouble(start) == "" {
			t.Errorf("an attempt from before the trouble with the %s ended it", cause)
		}
		if a.Trouble(start.Add(troubleMemory+1)) != "" {
			t.Errorf("trouble with the %s is remembered for too long", cause)
		}
		a.Reached(start)
		if a.Trouble(start) != "" || a.Cooling(start) {
			t.Errorf("an attempt from after the trouble with the %s did not end it", cause)
		}
	}
}

func TestCredentialThatCameEndsItsPause(t *testing.T) {
	a := newAccount()
	a.refuse(Rejection{Cause: CauseCredential}, "m")
	a.refuse(Rejection{Cause: CauseThrottle}, "m")
	if pauses := a.Cooldowns(start); len(pauses) != 2 || !a.Paused(start) || a.Blocked("m", true, start) {
		t.Errorf("pauses = %v, want a throttle and a credential, and no blocker", pauses)
	}
	a.CredentialCame()
	if pauses := a.Cooldowns(start); len(pauses) != 1 || pauses[0].Cause != CauseThrottle {
		t.Errorf("pauses = %v, want the throttle alone", pauses)
	}
}

func TestAClockThatGoesBackLengthensNoCooldown(t *testing.T) {
	const back = 3 * time.Hour
	seen, at := start.Add(-10*time.Second), start.Add(-back)
	a := newAccount()
	a.Reject(Rejection{Cause: CauseThrottle}, "m", seen, seen)
	a.Reject(Rejection{Cause: CauseCredential}, "m", seen, seen)
	a.Unreachable(seen)
	a.Unreachable(seen)
	left := map[Cause]time.Duration{}
	for _, c := range []Cooldown{a.Throttle, a.Credential, a.Network} {
		left[c.Cause] = c.Until.Sub(start)
	}
	a.NotLaterThan(at, start)
	for _, c := range []Cooldown{a.Throttle, a.Credential, a.Network} {
		if got := c.Until.Sub(at); got != left[c.Cause] || c.Since.After(at) {
			t.Errorf("%s: %v left instead of %v, since %v", c.Cause, got, left[c.Cause], c.Since)
		}
	}
	a.Reached(at)
	if pauses := []Cooldown{a.Credential, a.Network}; pauses[0].Failures+pauses[1].Failures != 0 {
		t.Errorf("an answer did not end the trouble: %+v", pauses)
	}
	if a.NotLaterThan(at.Add(-back), at); a.Network != (Cooldown{}) {
		t.Errorf("a cooldown came out of nothing: %+v", a.Network)
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

func TestRestoredWindowsAreWhatTheyWere(t *testing.T) {
	a := newAccount()
	a.seeAll(30, 20, 10)
	a.work("m", 5, start)
	b := NewAccount(a.ID, a.Windows, a.Blockers, a.Completed)
	near(t, "used", b.Used(b.Window("5h")), a.Used(a.Window("5h")))
	a.work("m", 5, start)
	near(t, "used of a copy", b.Used(b.Window("5h")), 32.5)
}
