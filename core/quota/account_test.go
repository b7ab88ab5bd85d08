package quota

import (
	"math"
	"testing"
	"time"
)

const (
	fiveHours = 5 * time.Hour
	week      = 7 * 24 * time.Hour
)

var start = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func newAccount(lag ...time.Duration) *Account {
	a := NewAccount(AccountID{"claude", "a"}, nil, nil, nil)
	a.Enabled = true
	a.Declare([]Declaration{
		{ID: "5h", Kind: KindRolling, Length: fiveHours},
		{ID: "weekly", Kind: KindWeekly, Length: week},
		{ID: "weekly:opus", Kind: KindModel, Length: week, Models: []string{"opus"}},
	})
	for _, l := range lag {
		a.UsageLag = l
	}
	return a
}

// reading of a window taken at start + after.
func (a *Account) reading(id string, used float64, reset time.Time, after time.Duration) Reading {
	return Reading{
		Declaration: a.Window(id).Declaration, UsedPercent: used, HasUsed: true, ResetsAt: reset,
		State: Observed, Source: SourceOfficialClient, ObservedAt: start.Add(after),
	}
}

func (a *Account) see(id string, used float64, reset time.Time, after time.Duration) {
	a.Observe([]Reading{a.reading(id, used, reset, after)}, start.Add(after))
}

func (a *Account) work(model string, requests int, at time.Time) {
	for range requests {
		a.Begin(model)
		a.Complete(model, at)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
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
