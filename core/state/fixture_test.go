package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

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
	t        rapid.TB
	log      *MemoryLog
	now      time.Time
	configs  []AccountConfig
	attempts uint64
}

// open makes a store with accounts of those names, read at 10 % more each.
func open(t rapid.TB, names ...string) *fixture {
	t.Helper()
	return openAt(t, start, names...)
}

func openAt(t rapid.TB, now time.Time, names ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, log: NewMemoryLog(true), now: now}
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
	done, err := f.Accept(attempt, f.now)
	f.must(err)
	return done.Sequence
}

func (f *fixture) end(attempt uint64) { f.End(attempt, f.now) }

// serve places, accepts and completes.
func (f *fixture) serve(want, session, model string) {
	f.t.Helper()
	a := f.try(want, session, model)
	f.accept(a)
	f.end(a)
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

// fill makes n bindings that were last used so far apart from each other, the last one now. It takes a thousand entries at a time
// and waits until they are durable.
func (f *fixture) fill(n int, apart time.Duration) {
	f.t.Helper()
	entries := make([]entry, 0, 1000)
	for i := range n {
		at := f.now.Add(-time.Duration(n-i) * apart)
		entries = append(entries, &bindingRow{
			Session: fmt.Sprintf("claude/%08x-1111-4222-8333-444455556666", i), Model: "claude-opus-4-1",
			Account: f.configs[i%len(f.configs)].ID.Name, BoundAt: at, LastUsed: at, BoundBy: BoundInitially, Cadence: 21,
		})
		if len(entries) == cap(entries) || i == n-1 {
			f.mu.Lock()
			sequence, err := f.commit(entries...)
			f.mu.Unlock()
			f.must(err)
			f.must(f.Durable(context.Background(), sequence))
			entries = entries[:0]
		}
	}
}

// refusing is a log that takes no entry with that word, as if it was too long.
type refusing struct {
	Log
	word string
}

var errRefused = errors.New("entry refused")

func (l *refusing) Append(entries ...[]byte) (uint64, error) {
	for _, e := range entries {
		if bytes.Contains(e, []byte(l.word)) {
			return 0, errRefused
		}
	}
	return l.Log.Append(entries...)
}

var (
	weekGone  = quota.Rejection{Cause: quota.CauseQuota, WindowID: "weekly"}
	throttled = quota.Rejection{Cause: quota.CauseThrottle, RetryAfter: 10 * time.Second}
)
