package plugin

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// ward is a healthy session on an account whose adapter sends what the test says, beside an account with more room.
type ward struct {
	t        rapid.TB
	log      *state.MemoryLog
	store    *state.Store
	configs  []state.AccountConfig
	now      time.Time
	attempts uint64
	home     quota.AccountID
}

func newWard(t rapid.TB) *ward {
	w := &ward{t: t, log: state.NewMemoryLog(true), now: testNow, home: quota.AccountID{Provider: "p", Name: "work"}}
	for _, name := range []string{"work", "other"} {
		w.configs = append(w.configs, state.AccountConfig{ID: quota.AccountID{Provider: "p", Name: name}, Enabled: true,
			Windows: []quota.Declaration{{ID: "rolling", Kind: quota.KindRolling, Length: 5 * time.Hour}}})
	}
	w.open()
	w.receive(window(func(p *providerv1.Window) { p.WindowId = "rolling" }))
	if got := w.serve(); got != w.home {
		t.Fatalf("the session begins on %v", got)
	}
	return w
}

func (w *ward) open() {
	store, err := state.Open(w.log, state.Settings{})
	if err == nil {
		err = store.ApplyAccounts(w.configs, w.now)
	}
	if err != nil {
		w.t.Fatalf("open state: %v", err)
	}
	w.store = store
}

// receive takes an answer of the adapter the way it takes in a daemon.
func (w *ward) receive(windows ...*providerv1.Window) {
	w.now = w.now.Add(time.Second)
	readings := testCheck.readings(windows, quota.SourceOfficialClient, w.now)
	if err := w.store.Observe(w.home, readings, w.now, w.now); err != nil {
		w.t.Fatalf("observe %+v: %v", readings, err)
	}
}

// serve sends a request of the session and returns which account served it.
func (w *ward) serve() quota.AccountID {
	w.attempts++
	d, err := w.store.Place(placement.Request{Attempt: w.attempts, RequestID: fmt.Sprint("r", w.attempts), Provider: "p",
		Session: state.SessionKey("p", "s"), Model: "m", Binds: true, At: w.now})
	if err == nil {
		_, err = w.store.Accept(w.attempts, w.now)
	}
	if err != nil {
		w.t.Fatalf("serve: %v", err)
	}
	w.store.End(w.attempts, w.now)
	return d.Account
}

// stays checks that the session is where it was.
func (w *ward) stays() {
	if got := w.serve(); got != w.home {
		w.t.Fatalf("the session was moved to %v", got)
	}
}

// survives writes a snapshot, begins anew from it and looks at every figure that came back.
func (w *ward) survives() {
	err := w.store.Tick(w.now)
	if err == nil {
		err = w.store.Snapshot()
	}
	if err != nil {
		w.t.Fatalf("write snapshot: %v", err)
	}
	w.open()
	for _, account := range w.store.Accounts(w.now) {
		if len(account.Windows) > quota.MaxWindows {
			w.t.Fatalf("%d windows of an account", len(account.Windows))
		}
		for _, known := range account.Windows {
			if used := known.UsedPercent; used != nil && (math.IsNaN(*used) || *used < 0 || *used > 100) {
				w.t.Fatalf("window %s is at %v percent", known.ID, *used)
			}
			if year := known.ResetsAt.Year(); !known.ResetsAt.IsZero() && (year < 2026 || year > 2028) {
				w.t.Fatalf("window %s resets in the year %d", known.ID, year)
			}
		}
	}
	w.stays()
}

func TestHostileTelemetryMovesNobodyAndEverySnapshotIsWritten(t *testing.T) {
	eachHostileFile(t, func(t *testing.T, raw []byte) {
		w := newWard(t)
		for line := range bytes.Lines(raw) {
			w.receive(careless(line)...)
			w.stays()
		}
		w.survives()
	})
}

// What an adapter calls exhausted blocks by its word; of anything else nothing may follow for a session that is bound.
func TestAnyTelemetryMovesNobodyAndEverySnapshotIsWritten(t *testing.T) {
	windows := rapid.SliceOfN(rapid.Custom(anyWindow), 0, 20)
	rapid.Check(t, func(t *rapid.T) {
		w := newWard(t)
		for range 100 { // rapid makes a hundred of these: 10,000 answers
			answer := windows.Draw(t, "windows")
			for _, p := range answer {
				if p.GetState() == providerv1.WindowState_WINDOW_STATE_EXHAUSTED {
					p.State = providerv1.WindowState_WINDOW_STATE_OBSERVED
				}
			}
			w.receive(answer...)
			w.stays()
		}
		w.survives()
	})
}
