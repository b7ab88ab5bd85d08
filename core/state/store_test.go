package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/placement"
)

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
	f.end(attempt)
	if err := f.Tick(f.now); !errors.Is(err, ErrClosed) {
		t.Errorf("tick: %v", err)
	}
}

// shortLog refuses entries over a length.
type shortLog struct {
	*MemoryLog
	longest int
}

func (l *shortLog) Append(entries ...[]byte) (uint64, error) {
	if slices.ContainsFunc(entries, func(e []byte) bool { return len(e) > l.longest }) {
		return 0, errors.New("entry too long")
	}
	return l.MemoryLog.Append(entries...)
}

func TestABatchThatTheLogRefusesChangesNothing(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.pass(time.Second)
	before, counted := dump(t, f.db), f.Stats()
	f.Store.log = &shortLog{f.log, 400}
	binding := func(session string) entry {
		return &bindingRow{Session: session, Model: "m", Account: "b", BoundAt: start, LastUsed: start, BoundBy: BoundInitially}
	}
	_, err := f.commit(binding("claude/s"), binding("claude/"+strings.Repeat(`"`, maxIdentity)), binding("claude/t"))
	if err == nil {
		t.Fatal("the log took it")
	}
	if after := f.Stats(); after != counted {
		t.Errorf("stats are %+v, were %+v", after, counted)
	}
	for _, when := range []string{"now", "after a restart"} {
		if diff := cmp.Diff(before, dump(t, f.db)); diff != "" {
			t.Errorf("%s the state differs:\n%s", when, diff)
		}
		f.recover()
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
