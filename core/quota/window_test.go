package quota

import (
	"testing"
	"time"
)

func TestStatesOfWindowsInPlacement(t *testing.T) {
	later := start.Add(2 * time.Hour)
	for name, c := range map[string]struct {
		prepare func(*Account)
		at      time.Time
		want    State
		known   bool
		used    float64
		hours   float64
	}{
		"declared and never observed is unknown": {
			func(*Account) {}, start, StateUnknown, false, 0, 5},
		"observed with a reset": {
			func(a *Account) { a.see("5h", 30, later, 0) }, start.Add(time.Hour), StateObserved, true, 30, 1},
		"observed without a reset is taken to last its whole length": {
			func(a *Account) { a.see("5h", 30, time.Time{}, 0) }, start.Add(time.Hour), StateNoReset, true, 30, 5},
		"older than its length is stale": {
			func(a *Account) { a.see("5h", 30, time.Time{}, 0) }, start.Add(fiveHours + 1), StateStale, false, 30, 5},
		"as old as its length is not stale": {
			func(a *Account) { a.see("5h", 30, time.Time{}, 0) }, start.Add(fiveHours), StateNoReset, true, 30, 5},
		"marked beyond use is stale": {
			func(a *Account) {
				a.see("5h", 30, later, 0)
				a.seeOnly(Unknown, time.Minute)
			}, start.Add(time.Hour), StateStale, false, 30, 1},
		"a reading that says nothing of the percentage changes nothing": {
			func(a *Account) {
				a.see("5h", 30, later, 0)
				a.seeOnly(NotExposed, time.Minute)
			}, start.Add(time.Hour), StateObserved, true, 30, 1},
		"awaiting its first use": {
			func(a *Account) { a.await() }, start.Add(time.Hour), StateAwaiting, true, 0, 5},
		"predicted once work was accepted": {
			func(a *Account) { a.await(); a.Accepted("m", start.Add(time.Hour)) }, start.Add(2 * time.Hour), StatePredicted, true, 0, 4},
		"the first accepted work sets the prediction": {
			func(a *Account) {
				a.await()
				a.Accepted("m", start.Add(time.Hour))
				a.Accepted("m", start.Add(2*time.Hour))
			}, start.Add(2 * time.Hour), StatePredicted, true, 0, 4},
		"a prediction that passed proves nothing": {
			func(a *Account) { a.await(); a.Accepted("m", start) }, start.Add(fiveHours), StateUnknown, false, 0, 5},
		"rolled after its authoritative reset": {
			func(a *Account) { a.see("5h", 30, later, 0) }, later, StateRolled, true, 0, 5},
		"rolled counts own work since the reset only": {
			func(a *Account) {
				a.see("5h", 30, later, 0)
				a.work("m", 3, start.Add(time.Hour))
				a.work("m", 2, later.Add(time.Minute))
			}, later.Add(time.Hour), StateRolled, true, 1, 5},
		"one minute is the least horizon": {
			func(a *Account) { a.see("5h", 30, later, 0) }, later.Add(-time.Second), StateObserved, true, 30, 1.0 / 60},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			a.Settle(c.at)
			w := a.Window("5h")
			if got := w.State(c.at); got != c.want || got.Known() != c.known {
				t.Errorf("state = %s, known %v; want %s, known %v", got, got.Known(), c.want, c.known)
			}
			near(t, "used", a.Used(w), c.used)
			near(t, "hours left", w.HoursLeft(c.at), c.hours)
		})
	}
}

// seeOnly reads a state of the 5h window that comes without a percentage.
func (a *Account) seeOnly(state ReportedState, after time.Duration) {
	r := a.reading("5h", 0, time.Time{}, after)
	r.State, r.HasUsed = state, false
	a.Observe([]Reading{r}, start.Add(after))
}

func (a *Account) await() {
	r := a.reading("5h", 0, time.Time{}, 0)
	r.State = AwaitingFirstUse
	a.Observe([]Reading{r}, start)
}

func TestAuthoritativeResetReplacesPrediction(t *testing.T) {
	a := newAccount()
	a.await()
	a.Accepted("m", start)
	reset := start.Add(4*time.Hour + 45*time.Minute)
	a.see("5h", 1, reset, time.Minute)
	w := a.Window("5h")
	if !w.ResetsAt.Equal(reset) || !w.PredictedAt.IsZero() || w.State(start.Add(time.Minute)) != StateObserved {
		t.Errorf("resets at %v, predicted %v", w.ResetsAt, w.PredictedAt)
	}
}

func TestOnlyAwaitedWindowsArePredicted(t *testing.T) {
	a := newAccount()
	a.see("5h", 0, time.Time{}, 0)
	if a.Accepted("m", start) {
		t.Error("a prediction was made for a window that was not reported as awaiting its first use")
	}
}
