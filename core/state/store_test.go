package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	fiveHours = 5 * time.Hour
	week      = 7 * 24 * time.Hour
)

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func id(name string) quota.AccountID { return quota.AccountID{Provider: "claude", Name: name} }

func config(name string) AccountConfig {
	return AccountConfig{ID: id(name), Enabled: true, Windows: []quota.Declaration{
		{ID: "5h", Kind: quota.KindRolling, Length: fiveHours},
		{ID: "weekly", Kind: quota.KindWeekly, Length: week},
	}}
}

// fixture is a store over a log in memory, with a time that the test moves.
type fixture struct {
	*Store
	t        testing.TB
	log      *MemoryLog
	now      time.Time
	configs  []AccountConfig
	attempts uint64
}

// open makes a store with accounts of those names, read at 10 % more each.
func open(t testing.TB, names ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, log: NewMemoryLog(true), now: start}
	for _, n := range names {
		f.configs = append(f.configs, config(n))
	}
	f.recover()
	for i, n := range names {
		f.read(n, float64(10+10*i), float64(10+10*i))
	}
	return f
}

// recover opens the log, as after a kill.
func (f *fixture) recover() {
	f.t.Helper()
	store, err := Open(f.log, Settings{})
	f.must(err)
	f.Store = store
	f.must(store.ApplyAccounts(f.configs, f.now))
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// pass moves the time on, with the ticks of a second.
func (f *fixture) pass(d time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(d)
	f.must(f.Tick(f.now))
}

func (f *fixture) read(name string, short, weekly float64) {
	f.t.Helper()
	c := config(name)
	readings := []quota.Reading{
		{Declaration: c.Windows[0], UsedPercent: short, HasUsed: true, ResetsAt: f.now.Add(4 * time.Hour), State: quota.Observed, Source: quota.SourceOfficialClient},
		{Declaration: c.Windows[1], UsedPercent: weekly, HasUsed: true, ResetsAt: f.now.Add(100 * time.Hour), State: quota.Observed, Source: quota.SourceOfficialClient},
	}
	f.must(f.Observe(id(name), readings, f.now, f.now))
}

// try places a request and wants it on an account; empty: on none.
func (f *fixture) try(want, session, model string, tried ...string) uint64 {
	f.t.Helper()
	attempt, d := f.ask(session, model, tried...)
	if d.Account.Name != want {
		f.t.Fatalf("%s placed on %q, want %q\n%s", session, d.Account.Name, want, placement.Explain(d))
	}
	return attempt
}

func (f *fixture) ask(session, model string, tried ...string) (uint64, placement.Decision) {
	f.t.Helper()
	f.attempts++
	req := placement.Request{
		Attempt: f.attempts, RequestID: fmt.Sprint("r", f.attempts), Session: session, Provider: "claude", Model: model,
		Binds: true, At: f.now,
	}
	for _, name := range tried {
		req.Tried = append(req.Tried, id(name))
	}
	d, err := f.Place(req)
	f.must(err)
	return f.attempts, d
}

func (f *fixture) accept(attempt uint64) uint64 {
	f.t.Helper()
	sequence, err := f.Accept(attempt, f.now)
	f.must(err)
	return sequence
}

func (f *fixture) complete(attempt uint64) { f.Complete(attempt, f.now) }

// serve places, accepts and completes.
func (f *fixture) serve(want, session, model string) {
	f.t.Helper()
	a := f.try(want, session, model)
	f.accept(a)
	f.complete(a)
}

func (f *fixture) reject(attempt uint64, r quota.Rejection) uint64 {
	f.t.Helper()
	sequence, err := f.Reject(attempt, r, f.now)
	f.must(err)
	return sequence
}

// lives wants the session's model on an account; empty: unbound.
func (f *fixture) lives(want, session, model string) {
	f.t.Helper()
	view, _ := f.Session(session)
	got := ""
	for _, b := range view.Bindings {
		if b.Model == model {
			got = b.Account.Name
		}
	}
	if got != want {
		f.t.Errorf("%s lives on %q, want %q", session, got, want)
	}
}

var (
	weekGone  = quota.Rejection{Cause: quota.CauseQuota, WindowID: "weekly"}
	throttled = quota.Rejection{Cause: quota.CauseThrottle, RetryAfter: 10 * time.Second}
)

func TestABindingIsMadeByAcceptance(t *testing.T) {
	f := open(t, "a", "b")
	attempt := f.try("a", "claude/s", "m")
	f.lives("", "claude/s", "m")
	if sequence := f.accept(attempt); sequence == 0 {
		t.Error("nothing to wait for before the first byte")
	}
	f.lives("a", "claude/s", "m")
}

func TestARefusedPlacementBindsNothing(t *testing.T) {
	f := open(t, "a", "b")
	f.Abort(f.try("a", "claude/s", "m"), f.now)
	f.lives("", "claude/s", "m")
}

func TestABoundSessionStays(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.read("a", 99, 99)
	f.serve("a", "claude/s", "m")
	f.read("a", 100, 100)
	f.serve("a", "claude/s", "m")
}

func TestAMovedSessionDoesNotReturn(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	attempt := f.try("a", "claude/s", "m")
	if f.reject(attempt, weekGone) == 0 {
		t.Error("a blocker has no sequence to wait for")
	}
	attempt = f.try("b", "claude/s", "m", "a")
	f.accept(attempt)
	f.complete(attempt)
	f.pass(week)
	f.read("a", 0, 0)
	f.serve("b", "claude/s", "m")
	view, _ := f.Session("claude/s")
	want := []Move{{From: "a", To: "b", At: start, By: BoundByFailover, Cause: "quota"}}
	if diff := cmp.Diff(want, view.Bindings[0].Moves); diff != "" {
		t.Errorf("moves differ:\n%s", diff)
	}
}

func TestASessionThatAllRefusedKeepsItsAccount(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	f.reject(f.try("b", "claude/s", "m", "a"), weekGone)
	f.try("", "claude/s", "m", "a", "b")
	f.lives("a", "claude/s", "m")
}

func TestALateSuccessNeverMovesBack(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	slow := f.try("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	moved := f.try("b", "claude/s", "m", "a")
	f.accept(moved)
	f.accept(slow)
	f.lives("b", "claude/s", "m")
	f.complete(slow)
	f.complete(moved)
	f.lives("b", "claude/s", "m")
}

func TestALateSuccessDoesNotClearABlocker(t *testing.T) {
	f := open(t, "a", "b")
	slow := f.try("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	f.accept(slow)
	f.complete(slow)
	f.try("b", "claude/other", "m")
}

func TestAPlacementThatLostItsBindingDoesNotBind(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	slow := f.try("a", "claude/s", "m")
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	f.accept(slow)
	f.lives("", "claude/s", "m")
}

func TestADetourBindsNothing(t *testing.T) {
	for name, c := range map[string]func(*fixture) uint64{
		"after the throttle of this request": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/s", "m"), throttled)
			return f.try("b", "claude/s", "m", "a")
		},
		"while the account rests": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/other", "m"), throttled)
			return f.try("b", "claude/s", "m")
		},
		"asked for by the proxy": func(f *fixture) uint64 {
			f.attempts++
			d, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", Binds: true, Detour: true, Tried: []quota.AccountID{id("a")}, At: f.now})
			if err != nil || d.Account != id("b") {
				f.t.Fatalf("placed on %s: %v", d.Account, err)
			}
			return f.attempts
		},
		"after network trouble of this request": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/s", "m"), quota.Rejection{Cause: quota.CauseNetwork})
			return f.try("b", "claude/s", "m", "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a", "b")
			f.serve("a", "claude/s", "m")
			attempt := c(f)
			if sequence := f.accept(attempt); sequence != 0 {
				t.Error("a detour has something to wait for")
			}
			f.complete(attempt)
			f.lives("a", "claude/s", "m")
			f.pass(time.Minute)
			f.serve("a", "claude/s", "m")
		})
	}
}

func TestFirstRequestsOfASessionEndOnOneAccount(t *testing.T) {
	t.Run("of one model", func(t *testing.T) {
		f := open(t, "a", "b")
		first, second := f.try("a", "claude/s", "m"), f.try("a", "claude/s", "m")
		f.reject(first, weekGone)
		again := f.try("b", "claude/s", "m", "a")
		f.reject(second, weekGone)
		follower := f.try("b", "claude/s", "m", "a")
		f.accept(follower)
		f.accept(again)
		f.lives("b", "claude/s", "m")
	})
	t.Run("of two models", func(t *testing.T) {
		f := open(t, "a", "b")
		title := f.try("a", "claude/s", "small")
		f.read("a", 95, 95)
		main := f.try("a", "claude/s", "large")
		f.accept(main)
		f.accept(title)
		f.lives("a", "claude/s", "small")
		f.lives("a", "claude/s", "large")
	})
}

func TestAccountWideBlockersMoveEachModelToTheSameAccount(t *testing.T) {
	f := open(t, "a", "b", "c")
	f.serve("a", "claude/s", "small")
	f.serve("a", "claude/s", "large")
	f.reject(f.try("a", "claude/s", "small"), weekGone)
	attempt := f.try("b", "claude/s", "small", "a")
	f.accept(attempt)
	f.read("b", 90, 90)
	f.serve("b", "claude/s", "large")
	f.lives("b", "claude/s", "large")
}

func TestRequestsWithoutASessionShareNothing(t *testing.T) {
	f := open(t, "a", "b")
	first := f.try("a", "", "m")
	if f.accept(first) != 0 {
		t.Error("a request without a session has something to wait for")
	}
	f.read("a", 90, 90)
	f.try("b", "", "m")
	if n := f.Stats().Bindings; n != 0 {
		t.Errorf("%d bindings", n)
	}
}

func TestPlacedRequestsBindNothingAndStayWithTheSession(t *testing.T) {
	f := open(t, "a", "b")
	ask := func() placement.Decision {
		f.attempts++
		d, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", At: f.now})
		f.must(err)
		return d
	}
	ask()
	f.accept(f.attempts)
	f.lives("", "claude/s", "m")
	f.serve("a", "claude/s", "m")
	f.read("a", 95, 95)
	if d := ask(); d.Account != id("a") || d.How != placement.HowBound {
		t.Errorf("placed on %s, %s", d.Account, d.How)
	}
}

func TestEverythingInFlightReturnsToZero(t *testing.T) {
	f := open(t, "a", "b")
	ends := []func(uint64){
		func(a uint64) { f.accept(a); f.complete(a) },
		func(a uint64) { f.accept(a); f.Abort(a, f.now) },
		func(a uint64) { f.Abort(a, f.now) },
		func(a uint64) { f.complete(a) },
		func(a uint64) { f.reject(a, throttled); f.pass(time.Minute) },
		func(a uint64) { f.accept(a); f.reject(a, quota.Rejection{Cause: quota.CauseNetwork}); f.complete(a) },
		func(a uint64) { f.accept(a); f.accept(a); f.complete(a); f.complete(a); f.Abort(a, f.now) },
		func(a uint64) { f.reject(a, quota.Rejection{Cause: "mood"}) },
	}
	for i, end := range ends {
		attempt, d := f.ask(fmt.Sprint("claude/", i), "m")
		if !d.Placed {
			t.Fatalf("end %d: nothing placed", i)
		}
		end(attempt)
	}
	stats := f.Stats()
	if stats.InFlight != 0 || stats.Reservations != 0 {
		t.Errorf("%d attempts, %d reservations", stats.InFlight, stats.Reservations)
	}
	for _, a := range f.accounts {
		if a.InFlight.Total() != 0 || a.Unconfirmed != 0 {
			t.Errorf("%s has %d in flight, %d unconfirmed", a.ID, a.InFlight.Total(), a.Unconfirmed)
		}
	}
	if n, err := count(f.db.Txn(false), tableReservations); err != nil || n != 0 {
		t.Errorf("%d reservations in the store: %v", n, err)
	}
}

func TestReservationsAreRowsWhilePlacementsRun(t *testing.T) {
	f := open(t, "a")
	attempt := f.try("a", "claude/s", "m")
	row, err := first[*reservationRow](f.db.Txn(false), tableReservations, attempt)
	if err != nil || row == nil || row.Account != id("a") || row.Session != "claude/s" || len(row.Estimates) != 2 {
		t.Fatalf("reservation = %+v, %v", row, err)
	}
	f.accept(attempt)
	f.complete(attempt)
	bound := f.try("a", "claude/s", "m")
	if row, _ := first[*reservationRow](f.db.Txn(false), tableReservations, bound); row != nil {
		t.Error("a request of a bound session costs a row")
	}
}

func TestABoundRequestCostsNoEntry(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(time.Second)
	before := f.Stats().Entries
	for range 1000 {
		f.serve("a", "claude/s", "m")
	}
	if n := f.Stats().Entries - before; n != 0 {
		t.Errorf("%d entries", n)
	}
}

func TestCoalescedWritesAreBounded(t *testing.T) {
	f := open(t, "a", "b", "c")
	const sessions, minutes = 20, 10
	for i := range sessions {
		_, d := f.ask(fmt.Sprint("claude/", i), "m")
		f.accept(f.attempts)
		f.complete(f.attempts)
		_ = d
	}
	f.pass(time.Second)
	before := f.Stats().Entries
	for range minutes * 60 {
		f.now = f.now.Add(time.Second)
		for i := range sessions {
			attempt, _ := f.ask(fmt.Sprint("claude/", i), "m")
			f.accept(attempt)
			f.complete(attempt)
		}
		f.read("a", 20, 20)
		f.must(f.Tick(f.now))
	}
	entries := f.Stats().Entries - before
	limit := uint64((sessions + len(f.configs) + 1) * (minutes + 1)) // a row a minute each
	if entries > limit {
		t.Errorf("%d entries for %d requests, at most %d", entries, minutes*60*sessions, limit)
	}
	t.Logf("%d requests a minute: %.1f entries a minute", 60*sessions, float64(entries)/minutes)
}

func TestWhatARestartKeeps(t *testing.T) {
	f := open(t, "a", "b")
	for i := range 5 {
		f.serve("a", "claude/s", "m")
		f.read("a", float64(10+i), 10)
	}
	f.reject(f.try("b", "claude/other", "m", "a"), weekGone)
	f.pass(2 * time.Minute)
	demand := f.demand
	inFlight := f.try("a", "claude/s", "m")
	f.accept(inFlight)
	before := f.accounts[id("a")].Account.Clone()
	used, cadence := before.Used(before.Window("5h")), before.Cadence.PerHour("m", f.now)-2
	f.recover()
	after := f.accounts[id("a")]
	if got := after.Used(after.Window("5h")); got != used {
		t.Errorf("used = %v, want %v", got, used)
	}
	if got := after.Window("5h").Kappa("m"); got != before.Window("5h").Kappa("m") {
		t.Errorf("κ = %v, want %v", got, before.Window("5h").Kappa("m"))
	}
	if got := after.Cadence.PerHour("m", f.now); got < 0.99*cadence || got > 1.01*cadence {
		t.Errorf("cadence = %v, want %v", got, cadence)
	}
	if f.demand != demand {
		t.Errorf("demand = %+v, want %+v", f.demand, demand)
	}
	if after.InFlight.Total() != 0 || f.Stats().Reservations != 0 {
		t.Error("work in flight outlived the process")
	}
	if after.LiveSessions != 1 {
		t.Errorf("%d live sessions", after.LiveSessions)
	}
	f.try("a", "claude/s", "m")
	f.try("", "claude/new", "m", "a")
}

func TestDanglingBindingsAreInert(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.configs = f.configs[1:]
	f.recover()
	f.read("b", 10, 10)
	attempt := f.try("b", "claude/s", "m")
	f.lives("a", "claude/s", "m")
	f.accept(attempt)
	f.lives("b", "claude/s", "m")
	view, _ := f.Session("claude/s")
	if view.Bindings[0].Cause != "removed" {
		t.Errorf("cause = %q", view.Bindings[0].Cause)
	}
}

func TestTheOperatorsSwitch(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	if sequence, err := f.SetEnabled(id("a"), false, f.now); err != nil || sequence == 0 {
		t.Fatalf("switch: %d, %v", sequence, err)
	}
	f.serve("b", "claude/s", "m")
	f.recover()
	f.read("a", 10, 10)
	f.read("b", 20, 20)
	f.try("b", "claude/new", "m")
	if _, err := f.SetEnabled(id("a"), true, f.now); err != nil {
		t.Fatal(err)
	}
	f.try("a", "claude/newer", "m")
	if _, err := f.SetEnabled(id("x"), true, f.now); !errors.Is(err, ErrUnknownAccount) {
		t.Errorf("error = %v", err)
	}
}

func TestWhatEndsASignInBlocker(t *testing.T) {
	signedOut := quota.Rejection{Cause: quota.CauseAuth}
	for name, c := range map[string]struct {
		do      func(*fixture)
		blocked bool
	}{
		"nothing": {func(*fixture) {}, true},
		"a read":  {func(f *fixture) { f.read("a", 0, 0) }, true},
		"the same login": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
		}, true},
		"the same login after a restart": {func(f *fixture) {
			f.recover()
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
		}, true},
		"another login": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "two", f.now)
			f.must(err)
		}, false},
		"a sign-in": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "", f.now)
			f.must(err)
		}, false},
		"the switch": {func(f *fixture) {
			_, err := f.SetEnabled(id("a"), true, f.now)
			f.must(err)
		}, false},
		"the configuration, off and on": {func(f *fixture) {
			f.configs[0].Enabled = false
			f.must(f.ApplyAccounts(f.configs, f.now))
			f.configs[0].Enabled = true
			f.must(f.ApplyAccounts(f.configs, f.now))
		}, false},
		"a reload that changes nothing": {func(f *fixture) { f.must(f.ApplyAccounts(f.configs, f.now)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
			f.reject(f.try("a", "claude/s", "m"), signedOut)
			c.do(f)
			for range 2 { // and so it stays after a restart
				if _, d := f.ask("claude/s", "m"); d.Placed == c.blocked {
					t.Errorf("placed %v", d.Placed)
				}
				f.recover()
			}
		})
	}
}

func TestMoveAndForget(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/s", "n")
	if _, err := f.MoveSession("claude/s", id("b"), f.now); err != nil {
		t.Fatal(err)
	}
	f.serve("b", "claude/s", "m")
	f.serve("b", "claude/s", "n")
	if a, b := f.accounts[id("a")], f.accounts[id("b")]; a.bindings != 0 || b.bindings != 2 || a.LiveSessions != 0 || b.LiveSessions != 2 {
		t.Errorf("bindings %d and %d, live %d and %d", a.bindings, b.bindings, a.LiveSessions, b.LiveSessions)
	}
	for name, c := range map[string]struct {
		key  string
		to   quota.AccountID
		want error
	}{
		"to an account that is not there": {"claude/s", id("x"), ErrUnknownAccount},
		"to another provider":             {"codex/s", id("a"), ErrUnknownAccount},
		"of a session that is not there":  {"claude/x", id("a"), ErrUnknownSession},
	} {
		if _, err := f.MoveSession(c.key, c.to, f.now); !errors.Is(err, c.want) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	f.lives("", "claude/s", "m")
	f.lives("", "claude/s", "n")
	if _, err := f.ForgetSession("claude/s", f.now); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("error = %v", err)
	}
	f.recover()
	f.lives("", "claude/s", "m")
}

func TestAForgottenSessionStartsAsANewOne(t *testing.T) {
	f := open(t, "a")
	for range 50 {
		f.serve("a", "claude/s", "m")
	}
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	if got := f.accounts[id("a")].Cadence.PerHour("m", f.now); got > 1e-9 {
		t.Errorf("it left a cadence of %v", got)
	}
	f.try("a", "claude/s", "m")
	if got, want := f.accounts[id("a")].Cadence.PerHour("m", f.now), f.demand.PerHour(); math.Abs(got-want) > 1e-9 {
		t.Errorf("it counts for %v an hour, a new one for %v", got, want)
	}
}

func TestWritesOfASessionThatIsNotLiveAreCoalescedToo(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(time.Hour)
	before := f.Stats().Entries
	for range 600 {
		f.attempts++
		if _, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", At: f.now}); err != nil {
			t.Fatal(err)
		}
		f.Abort(f.attempts, f.now)
		f.pass(time.Second)
	}
	if n := f.Stats().Entries - before; n > 2*11 {
		t.Errorf("%d entries in ten minutes", n)
	}
}

func TestIdleBindingsExpire(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/old", "m")
	f.pass(29 * 24 * time.Hour)
	f.serve("a", "claude/young", "m")
	f.lives("a", "claude/old", "m")
	f.pass(25 * time.Hour)
	f.lives("", "claude/old", "m")
	f.lives("a", "claude/young", "m")
	f.recover()
	f.lives("", "claude/old", "m")
	f.lives("a", "claude/young", "m")
}

func TestTheLongestIdleGoWhenThereAreTooMany(t *testing.T) {
	f := open(t, "a")
	f.ApplySettings(Settings{MaxBindings: 3})
	for i := range 6 {
		f.now = f.now.Add(time.Minute)
		f.serve("a", fmt.Sprint("claude/", i), "m")
	}
	f.pass(time.Hour)
	f.must(f.Tick(f.now.Add(time.Second)))
	for i := range 6 {
		want := ""
		if i >= 3 {
			want = "a"
		}
		f.lives(want, fmt.Sprint("claude/", i), "m")
	}
	if f.accounts[id("a")].bindings != 3 || f.Stats().Bindings != 3 {
		t.Errorf("%d bindings counted", f.accounts[id("a")].bindings)
	}
}

func TestExportAndImport(t *testing.T) {
	from, to := open(t, "a", "b"), open(t, "a", "b")
	from.serve("a", "claude/only-there", "m")
	from.serve("a", "claude/newer-there", "m")
	to.now = start.Add(-time.Hour)
	to.read("b", 0, 0)
	to.serve("b", "claude/newer-there", "m")
	to.now = start.Add(time.Hour)
	to.serve("b", "claude/newer-here", "m")
	from.serve("a", "claude/newer-here", "m")
	var exported bytes.Buffer
	from.must(from.Export(&exported, from.now))
	done, err := to.Import(bytes.NewReader(exported.Bytes()), to.now)
	if err != nil || done.Added != 2 || done.Kept != 1 {
		t.Fatalf("imported %+v, %v", done, err)
	}
	for range 2 {
		to.lives("a", "claude/only-there", "m")
		to.lives("a", "claude/newer-there", "m")
		to.lives("b", "claude/newer-here", "m")
		to.recover()
	}
	again, err := to.Import(bytes.NewReader(exported.Bytes()), to.now)
	if err != nil || again.Added != 0 || again.Kept != 3 {
		t.Errorf("imported again %+v, %v", again, err)
	}
	for name, bad := range map[string]string{
		"no JSON":           "{",
		"another format":    `{"format":2,"bindings":[]}`,
		"a foreign field":   `{"format":1,"bindings":[],"token":"x"}`,
		"a bad session":     `{"format":1,"bindings":[{"session":"nobody","account":"a","bound_by":"initial"}]}`,
		"a line break":      `{"format":1,"bindings":[{"session":"claude/a\nb","account":"a","bound_by":"initial"}]}`,
		"a strange maker":   `{"format":1,"bindings":[{"session":"claude/s","account":"a","bound_by":"me"}]}`,
		"a session twice":   `{"format":1,"bindings":[{"session":"claude/s","account":"a","bound_by":"initial"},{"session":"claude/s","account":"b","bound_by":"initial"}]}`,
		"a year after 9999": `{"format":1,"bindings":[{"session":"claude/s","account":"a","bound_by":"initial","bound_at":"10000-01-01T00:00:00Z"}]}`,
	} {
		if _, err := to.Import(bytes.NewReader([]byte(bad)), to.now); err == nil {
			t.Errorf("%s was imported", name)
		}
	}
}

func TestSessionKeys(t *testing.T) {
	long := strings.Repeat("x", 257)
	for name, c := range map[string]struct {
		identity, want string
		hashed         bool
	}{
		"a plain identity":        {identity: "0a1b-2c", want: "claude/0a1b-2c"},
		"none":                    {},
		"the longest":             {identity: long[:256], want: "claude/" + long[:256]},
		"a longer one is hashed":  {identity: long, hashed: true},
		"a line break is hashed":  {identity: "a\nb", hashed: true},
		"a zero byte is hashed":   {identity: "a\x00b", hashed: true},
		"a bidi mark is hashed":   {identity: "a\u202eb", hashed: true},
		"invalid UTF-8 is hashed": {identity: "a\xffb", hashed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := SessionKey("claude", c.identity)
			digest, hashed := strings.CutPrefix(got, "claude/sha256:")
			if hashed != c.hashed || (hashed && len(digest) != 64) || (!hashed && got != c.want) {
				t.Errorf("key = %q", got)
			}
			if again := boundedSession("claude", got); again != got {
				t.Errorf("the key of a key = %q", again)
			}
		})
	}
	if SessionHash("claude/a") == SessionHash("claude/b") || len(SessionHash("claude/a")) != 12 || SessionHash("") != "" {
		t.Error("hashes do not tell sessions apart")
	}
}

func TestStrangeSessionsAndModelsAreBounded(t *testing.T) {
	f := open(t, "a")
	strange := "claude/" + string(bytes.Repeat([]byte("é\n"), 500))
	for range 2 {
		f.serve("a", strange, string(bytes.Repeat([]byte("m\x00"), 500)))
	}
	if n := f.Stats().Bindings; n != 1 {
		t.Errorf("%d bindings", n)
	}
	for i := range 10 * maxThreads {
		f.serve("a", "claude/many", fmt.Sprint("model-", i))
	}
	if n := f.Stats().Bindings; n > maxThreads+2 {
		t.Errorf("%d bindings of one session", n)
	}
}

func TestAnAttemptIsPlacedOnce(t *testing.T) {
	f := open(t, "a")
	f.try("a", "claude/s", "m")
	if _, err := f.Place(placement.Request{Attempt: f.attempts, Provider: "claude", At: f.now}); !errors.Is(err, ErrAttemptExists) {
		t.Errorf("error = %v", err)
	}
}

func TestPingKeepsItsDeadline(t *testing.T) {
	f := open(t, "a")
	if err := f.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := f.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
	f.mu.Unlock()
}

func TestWatchTellsOfChanges(t *testing.T) {
	f := open(t, "a")
	for name, change := range map[string]func(){
		"a binding":  func() { f.serve("a", "claude/s", "m") },
		"a reading":  func() { f.read("a", 50, 50) },
		"the switch": func() { _, err := f.SetEnabled(id("a"), true, f.now); f.must(err) },
		"a blocker":  func() { f.reject(f.try("a", "claude/s", "m"), weekGone) },
		"a reset":    func() { f.pass(week) },
	} {
		changed := f.Watch()
		change()
		select {
		case <-changed:
		default:
			t.Errorf("%s went unnoticed", name)
		}
	}
}

func TestAClosedStoreRefuses(t *testing.T) {
	f := open(t, "a")
	attempt := f.try("a", "claude/s", "m")
	f.must(f.Close())
	f.must(f.Close())
	if _, err := f.Place(placement.Request{Attempt: 99, Provider: "claude", At: f.now}); !errors.Is(err, ErrClosed) {
		t.Errorf("place: %v", err)
	}
	if _, err := f.Accept(attempt, f.now); !errors.Is(err, ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	f.complete(attempt)
	if err := f.Tick(f.now); !errors.Is(err, ErrClosed) {
		t.Errorf("tick: %v", err)
	}
}

func TestCloseWritesWhatIsCoalesced(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(time.Second)
	f.now = f.now.Add(time.Second)
	f.serve("a", "claude/s", "m")
	f.read("a", 42, 42)
	f.must(f.Close())
	f.recover()
	view, _ := f.Session("claude/s")
	if !view.LastUsed.Equal(f.now) {
		t.Errorf("last used %v, want %v", view.LastUsed, f.now)
	}
	if got := f.accounts[id("a")].Window("5h").EstimatePercent; got != 42 {
		t.Errorf("percent = %v", got)
	}
}
