package state

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

func TestEverythingInFlightReturnsToZero(t *testing.T) {
	f := open(t, "a", "b")
	ends := []func(uint64){
		func(a uint64) { f.accept(a); f.end(a) },
		func(a uint64) { f.end(a) },
		func(a uint64) { f.reject(a, throttled); f.pass(time.Minute) },
		func(a uint64) { f.accept(a); f.reject(a, quota.Rejection{Cause: quota.CauseNetwork}); f.end(a) },
		func(a uint64) { f.accept(a); f.accept(a); f.end(a); f.end(a) },
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
	f.try("a", "claude/other", "m")
	for _, subject := range []string{"claude/s", "r1"} {
		found := f.Reservations(subject)
		if len(found) != 1 || found[0].Account != id("a") || found[0].RequestID != "r1" || !found[0].StartedAt.Equal(f.now) || len(found[0].Estimates) != 2 {
			t.Fatalf("reservations of %s: %+v", subject, found)
		}
	}
	f.accept(attempt)
	f.end(attempt)
	f.try("a", "claude/s", "m")
	if found := f.Reservations("claude/s"); len(found) != 0 {
		t.Errorf("a request of a bound session costs a row: %+v", found)
	}
	f.try("a", "", "m")
	if found := f.Reservations(""); len(found) != 0 {
		t.Errorf("of nobody: %+v", found)
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
		f.end(f.attempts)
		_ = d
	}
	f.pass(time.Second)
	before := f.Stats().Entries
	for range minutes * 60 {
		f.now = f.now.Add(time.Second)
		for i := range sessions {
			attempt, _ := f.ask(fmt.Sprint("claude/", i), "m")
			f.accept(attempt)
			f.end(attempt)
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
	before := f.accounts[id("a")].Account
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
		f.End(f.attempts, f.now)
		f.pass(time.Second)
	}
	if n := f.Stats().Entries - before; n > 2*11 {
		t.Errorf("%d entries in ten minutes", n)
	}
}

func TestAnAttemptIsPlacedOnce(t *testing.T) {
	f := open(t, "a")
	f.try("a", "claude/s", "m")
	if _, err := f.Place(placement.Request{Attempt: f.attempts, Provider: "claude", At: f.now}); !errors.Is(err, ErrAttemptExists) {
		t.Errorf("error = %v", err)
	}
}
