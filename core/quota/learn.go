package quota

import (
	"math"
	"time"
)

// Learned consumption, κ: percent of a window that one completed request of a model costs. A prior weighs as much as
// priorRequests requests; older evidence fades with a memory of memoryRequests requests.
const (
	priorRequests  = 10
	memoryRequests = 300
	// priorPercent is the prior of a five-hour window; longer ones cost less of themselves, by priorExponent.
	priorPercent  = 0.5
	priorLength   = 5 * time.Hour
	priorExponent = 0.6
	leastPercent  = 1e-4
)

// Consumption is what one model was seen to take from a window: fading sums of percent and of requests.
type Consumption struct {
	Model    string  `json:"model"`
	Percent  float64 `json:"percent"`
	Requests float64 `json:"requests"`
}

// Baseline is the observation that the next learning step is measured from. The zero value is none.
type Baseline struct {
	Valid       bool    `json:"valid,omitempty"`
	UsedPercent float64 `json:"used_percent,omitempty"`
	Completed   Counts  `json:"completed,omitempty"`
}

// priorOf is the percentage assumed for a request on a window of this length before anything is learned.
func priorOf(length time.Duration) float64 {
	if length <= 0 {
		return priorPercent
	}
	return priorPercent * math.Pow(priorLength.Hours()/length.Hours(), priorExponent)
}

// pooledKappa is the window's κ over all its models: what a model without evidence of its own is taken to cost.
func (w *Window) pooledKappa() float64 {
	prior := w.prior
	if prior == 0 {
		prior = priorOf(w.Length)
	}
	var percent, requests float64
	for i := range w.Learned {
		percent += w.Learned[i].Percent
		requests += w.Learned[i].Requests
	}
	return (priorRequests*prior + percent) / (priorRequests + requests)
}

// Kappa is the percentage of the window that one completed request of the model is expected to take.
func (w *Window) Kappa(model string) float64 { return w.kappaFrom(w.pooledKappa(), model) }

func (w *Window) kappaFrom(pooled float64, model string) float64 {
	for i := range w.Learned {
		if l := &w.Learned[i]; l.Model == model {
			pooled = (priorRequests*pooled + l.Percent) / (priorRequests + l.Requests)
			break
		}
	}
	return max(pooled, leastPercent)
}

// learn takes the step from the baseline to an observation: the percent that the window moved is shared out among the
// models that completed requests in between, by what each was expected to take. A step back, and a step with no
// completion of ours (somebody else uses the account), teach nothing. The observation becomes the next baseline.
func (w *Window) learn(usedPercent float64, completed Counts) {
	from := w.Baseline
	w.Baseline = Baseline{Valid: true, UsedPercent: usedPercent, Completed: completed}
	step := usedPercent - from.UsedPercent
	if !from.Valid || step < 0 {
		return
	}
	pooled := w.pooledKappa()
	var expected float64
	for i := range completed {
		if w.AppliesTo(completed[i].Model) {
			expected += completed[i].since(from.Completed) * w.kappaFrom(pooled, completed[i].Model)
		}
	}
	if expected == 0 {
		return
	}
	learned := append([]Consumption(nil), w.Learned...)
	for i := range completed {
		model, requests := completed[i].Model, completed[i].since(from.Completed)
		if requests == 0 || !w.AppliesTo(model) {
			continue
		}
		share := step * requests * w.kappaFrom(pooled, model) / expected
		learned = fadeAndAdd(learned, model, share, requests)
	}
	w.Learned = learned
}

func fadeAndAdd(sums []Consumption, model string, percent, requests float64) []Consumption {
	at := -1
	for i := range sums {
		if sums[i].Model == model {
			at = i
		}
	}
	if at < 0 {
		sums = append(sums, Consumption{Model: model})
		at = len(sums) - 1
	}
	keep := math.Exp(-requests / memoryRequests)
	sums[at].Percent = sums[at].Percent*keep + percent
	sums[at].Requests = sums[at].Requests*keep + requests
	return sums
}
