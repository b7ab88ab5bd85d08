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
				r := a.reading("5h", 0, time.Time{}, time.Minute)
				r.State, r.HasUsed = Unknown, false
				a.Observe([]Reading{r}, start.Add(time.Minute))
			}, start.Add(time.Hour), StateStale, false, 30, 1},
		"a reading that says nothing of the percentage changes nothing": {
			func(a *Account) {
				a.see("5h", 30, later, 0)
				r := a.reading("5h", 0, time.Time{}, time.Minute)
				r.State, r.HasUsed = NotExposed, false
				a.Observe([]Reading{r}, start.Add(time.Minute))
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

func TestNoRequestCountsTwice(t *testing.T) {
	reset := start.Add(4 * time.Hour)
	a := newAccount()
	a.see("5h", 20, reset, 0)
	w := a.Window("5h")
	a.Begin("m")
	near(t, "used with one in flight", a.Used(w), 20)
	near(t, "reserved", a.Load(w, "m", 1, start).Reserved, 0.5)
	a.Complete("m", start.Add(10*time.Second))
	near(t, "used after it completed", a.Used(w), 20.5)
	near(t, "reserved after it completed", a.Load(w, "m", 1, start).Reserved, 0)
	a.Observe([]Reading{a.reading("5h", 20, reset, 5*time.Second)}, start.Add(20*time.Second))
	near(t, "used when a read from before it completed arrives late", a.Used(w), 20.5)
	a.see("5h", 21, reset, 15*time.Second)
	near(t, "used when a read includes it", a.Used(w), 21)
	a.Observe([]Reading{a.reading("5h", 20, reset, 8*time.Second)}, start.Add(30*time.Second))
	near(t, "used when an older read arrives", a.Used(w), 21)
}

func TestUsageLagKeepsYoungCompletionsOutOfTheObservation(t *testing.T) {
	a := newAccount(time.Minute)
	a.work("m", 1, start.Add(-90*time.Second))
	a.work("m", 1, start.Add(-30*time.Second))
	a.see("5h", 20, start.Add(time.Hour), 0)
	near(t, "used", a.Used(a.Window("5h")), 20.5)
}

func TestModelScopedWindowsCountTheirModelsOnly(t *testing.T) {
	a := newAccount()
	a.see("weekly:opus", 40, start.Add(time.Hour), 0)
	a.work("sonnet", 50, start.Add(time.Minute))
	near(t, "used of the scoped window", a.Used(a.Window("weekly:opus")), 40)
}

func TestKappaIsLearnedFromSteps(t *testing.T) {
	reset := start.Add(4 * time.Hour)
	t.Run("the prior falls with the length", func(t *testing.T) {
		a := newAccount()
		near(t, "five hours", a.Window("5h").Kappa("m"), 0.5)
		near(t, "week", a.Window("weekly").Kappa("m"), 0.5*math.Pow(5.0/168, 0.6))
	})
	t.Run("a step is shared among the completed requests", func(t *testing.T) {
		a := newAccount()
		a.see("5h", 10, reset, 0)
		a.work("m", 10, start.Add(time.Minute))
		a.see("5h", 30, reset, 2*time.Minute)
		pooled := (10*0.5 + 20) / (10 + 10)
		near(t, "κ of the model", a.Window("5h").Kappa("m"), (10*pooled+20)/(10+10))
		near(t, "κ of another model", a.Window("5h").Kappa("n"), pooled)
	})
	for name, second := range map[string]struct {
		used  float64
		reset time.Time
		work  int
	}{
		"a step back teaches nothing":                      {9.5, reset, 10},
		"a step without work of ours teaches nothing":      {30, reset, 0},
		"a step into another instance teaches nothing":     {30, reset.Add(time.Hour), 10},
		"a step down by more than one is another instance": {5, reset, 10},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			a.see("5h", 10, reset, 0)
			a.work("m", second.work, start.Add(time.Minute))
			a.see("5h", second.used, second.reset, 2*time.Minute)
			near(t, "κ", a.Window("5h").Kappa("m"), 0.5)
		})
	}
	t.Run("a jittering reset is the same instance", func(t *testing.T) {
		a := newAccount()
		a.see("5h", 10, reset, 0)
		a.work("m", 10, start.Add(time.Minute))
		a.see("5h", 30, reset.Add(4*time.Minute), 2*time.Minute)
		if k := a.Window("5h").Kappa("m"); k < 1 {
			t.Errorf("κ = %v, nothing was learned", k)
		}
	})
	t.Run("old evidence fades", func(t *testing.T) {
		sums := fadeAndAdd([]Consumption{{"m", 100, 100}}, "m", 0, memoryRequests)
		near(t, "percent", sums[0].Percent, 100/math.E)
	})
}

func TestDemand(t *testing.T) {
	var d Demand
	near(t, "prior ν", d.PerHour(), 40)
	near(t, "prior L", d.ActiveHours(), 1)
	near(t, "cadence of a new session", d.NewSessionCadence(), 20)
	d.Continued(30 * time.Minute)
	near(t, "ν", d.PerHour(), 201/5.5)
	near(t, "L while nothing ended", d.ActiveHours(), 5.5/5)
	d.PeriodEnded()
	near(t, "L", d.ActiveHours(), 5.5/6)
	d.Continued(-time.Hour)
	if d.Hours > 0.5 {
		t.Errorf("hours = %v: a clock that went back added exposure", d.Hours)
	}
}

func TestCadenceFades(t *testing.T) {
	var c Cadence
	c.Add("m", 20, start)
	near(t, "per hour", c.PerHour("m", start), 40)
	near(t, "per hour after its memory", c.PerHour("m", start.Add(CadenceMemory)), 40/math.E)
	c.Add("m", -100, start)
	near(t, "never below zero", c.PerHour("m", start), 0)
	c.Add("n", 1, start.Add(-time.Hour))
	near(t, "a clock that went back fades nothing", c.PerHour("n", start), 2)
}
