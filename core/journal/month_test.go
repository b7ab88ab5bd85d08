package journal

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

const (
	day          = 24 * time.Hour
	sessionsADay = 24
	keptFor      = 7 * day
)

// month is what a daemon does with its state, for a month of virtual time, over a disk in memory.
type month struct {
	*testing.T
	disk     *disk
	journal  *Journal
	store    *state.Store
	accounts []state.AccountConfig
	attempts uint64
	stop     func()
}

func account(name string) state.AccountConfig {
	return state.AccountConfig{ID: quota.AccountID{Provider: "claude", Name: name}, Enabled: true, Windows: []quota.Declaration{
		{ID: "5h", Kind: quota.KindRolling, Length: 5 * time.Hour}, {ID: "weekly", Kind: quota.KindWeekly, Length: 7 * day},
	}}
}

// run opens the state and does what the daemon does beside its requests.
func (m *month) run() {
	m.Helper()
	var err error
	if m.journal, err = Open(Options{FS: m.disk, Limits: Limits{RotateEntries: 400}}); err != nil {
		m.Fatal(err)
	}
	if m.store, err = state.Open(m.journal, state.Settings{Idle: keptFor}); err != nil {
		m.Fatal(err)
	}
	if err := m.store.ApplyAccounts(m.accounts, time.Now()); err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.Context())
	var beside sync.WaitGroup
	beside.Go(func() { m.store.Run(ctx) })
	beside.Go(func() { m.tick(ctx) })
	m.stop = func() {
		cancel()
		beside.Wait()
		if err := m.store.Close(); err != nil {
			m.Error(err)
		}
	}
}

func (m *month) tick(ctx context.Context) {
	ticker := time.NewTicker(virtualTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := m.store.Tick(time.Now()); err != nil {
				m.Error(err)
			}
		}
	}
}

// resetOf the instance of a window that runs at a time, in the provider's reckoning.
func resetOf(w quota.Declaration, at time.Time) time.Time { return at.Truncate(w.Length).Add(w.Length) }

// mustShowResets wants what was read at a time to be shown until its reset, and an estimate from then on.
func (m *month) mustShowResets(read time.Time) {
	m.Helper()
	now := time.Now()
	for _, a := range m.store.Accounts(now) {
		for _, w := range a.Windows {
			want := quota.ViewFresh
			if !now.Before(resetOf(w.Declaration, read)) {
				want = quota.ViewRolled
			}
			if w.State != want {
				m.Errorf("%s: %s of %s is shown as %s, want %s", now, w.ID, a.ID, w.State, want)
			}
		}
	}
}

// read reports quota that is used up in the course of its windows.
func (m *month) read() {
	m.Helper()
	now := time.Now()
	for _, a := range m.accounts {
		var readings []quota.Reading
		for _, w := range a.Windows {
			gone := 1 - float64(resetOf(w, now).Sub(now))/float64(w.Length)
			readings = append(readings, quota.Reading{
				Declaration: w, UsedPercent: 90 * gone, HasUsed: true, State: quota.Observed,
				ResetsAt: resetOf(w, now), Source: quota.SourceOfficialClient,
			})
		}
		if err := m.store.Observe(a.ID, readings, now, now); err != nil {
			m.Fatal(err)
		}
	}
}

// turn is one request of a session, up to its end.
func (m *month) turn(session string) {
	m.Helper()
	m.attempts++
	attempt := m.attempts
	d, err := m.store.Place(placement.Request{Attempt: attempt, Session: session, Provider: "claude", Model: "m", Binds: true, At: time.Now()})
	if err != nil || !d.Placed {
		m.Fatalf("%s is not placed: %v\n%s", session, err, placement.Explain(d))
	}
	done, err := m.store.Accept(attempt, time.Now())
	if err != nil {
		m.Fatal(err)
	}
	if err := m.store.Durable(m.Context(), done.Sequence); err != nil {
		m.Fatal(err)
	}
	time.Sleep(20 * time.Second)
	m.store.End(attempt, time.Now())
}

// pass lets one day pass, with a session of three turns every hour.
func (m *month) pass(n int) {
	m.Helper()
	end := time.Now().Add(day)
	for i := range sessionsADay {
		m.read()
		read := time.Now()
		for range 3 {
			m.turn(fmt.Sprintf("claude/%d-%d", n, i))
			time.Sleep(2 * time.Minute)
		}
		time.Sleep(time.Until(end.Add(-time.Duration(sessionsADay-1-i) * day / sessionsADay)))
		m.mustShowResets(read)
	}
}

// footprint is what a day leaves behind.
type footprint struct {
	stats   state.Stats
	entries uint64 // of the day
	files   int
	bytes   int
}

func (m *month) footprint(before uint64) footprint {
	p := footprint{stats: m.store.Stats(), entries: m.journal.Stats().Sequence - before}
	for _, data := range m.disk.files() {
		p.files++
		p.bytes += len(data)
	}
	return p
}

func TestAMonthNeitherDriftsNorGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))) // the bubble begins in 2000
		m := &month{T: t, disk: newDisk(1), accounts: []state.AccountConfig{account("a"), account("b")}}
		m.run()
		var days []footprint
		for n := range 30 {
			before := m.journal.Stats().Sequence
			m.pass(n)
			days = append(days, m.footprint(before))
			if n == 20 { // in another process nothing is different
				m.stop()
				m.run()
			}
		}
		early, late := days[10], days[29]
		if late.stats.Bindings != early.stats.Bindings || late.stats.Bindings < int(keptFor/day)*sessionsADay {
			t.Errorf("%d bindings are kept on the last day, %d on the eleventh", late.stats.Bindings, early.stats.Bindings)
		}
		if late.stats.InMemory > early.stats.InMemory || late.stats.LiveSessions != early.stats.LiveSessions || late.stats.InFlight != 0 {
			t.Errorf("sessions in memory: %+v, on the eleventh day %+v", late.stats, early.stats)
		}
		if late.entries > early.entries*11/10 || late.files > 5 || late.bytes > 2*early.bytes {
			t.Errorf("%d entries a day in %d files of %d bytes, on the eleventh day %d in %d of %d",
				late.entries, late.files, late.bytes, early.entries, early.files, early.bytes)
		}
		if late.stats.ClockHeld || m.journal.Degraded() != nil {
			t.Errorf("clock held %v, degraded: %v", late.stats.ClockHeld, m.journal.Degraded())
		}
		m.stop()
		t.Logf("each day %d sessions, %d entries; %d bindings, %d bytes in %d files", sessionsADay, late.entries, late.stats.Bindings, late.bytes, late.files)
	})
}
