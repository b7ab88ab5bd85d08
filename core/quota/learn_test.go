package quota

import (
	"math"
	"testing"
	"time"
)

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
