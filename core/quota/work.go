package quota

import "time"

// Begin reserves one request of the model.
func (a *Account) Begin(model string) { a.InFlight = a.InFlight.Add(model, 1) }

// Release ends the reservation of a request that consumed nothing.
func (a *Account) Release(model string) { a.InFlight = a.InFlight.Add(model, -1) }

// Complete ends the reservation of a request that consumed something, and counts it.
func (a *Account) Complete(model string, at time.Time) {
	a.Release(model)
	a.Completed = a.Completed.Add(model, 1)
	a.recent.add(model, at)
}

// completedAt tells the requests that had completed by that time, as far back as it is remembered.
func (a *Account) completedAt(at time.Time) Counts {
	counts := a.Completed.Clone()
	for i := len(a.recent.done) - 1; i >= 0 && a.recent.done[i].at > at.UnixMilli(); i-- {
		counts = counts.Add(a.recent.models[a.recent.done[i].model], -1)
	}
	return counts
}

const (
	rememberedCompletions = 4096
	rememberedFor         = time.Hour
)

// recentCompletions remembers when requests completed, so that an observation can be set against what it can include.
type recentCompletions struct {
	models []string
	done   []completion // ascending
}

type completion struct {
	at    int64 // Unix milliseconds
	model int32 // index into models
}

func (r *recentCompletions) add(model string, at time.Time) {
	r.prune(at)
	r.done = append(r.done, completion{at: at.UnixMilli(), model: r.index(model)})
}

func (r *recentCompletions) index(model string) int32 {
	for i, m := range r.models {
		if m == model {
			return int32(i)
		}
	}
	if len(r.models) >= maxModels && model != OtherModels {
		return r.index(OtherModels)
	}
	r.models = append(r.models, model)
	return int32(len(r.models) - 1)
}

// prune forgets the older half when there are too many, and all that nothing can refer to any more.
func (r *recentCompletions) prune(at time.Time) {
	drop := 0
	if len(r.done) >= rememberedCompletions {
		drop = len(r.done) / 2
	}
	oldest := at.Add(-rememberedFor).UnixMilli()
	if len(r.done) > 0 && r.done[len(r.done)-1].at < oldest {
		drop = len(r.done)
	}
	if drop > 0 {
		r.done = append(r.done[:0], r.done[drop:]...)
	}
}

func (r *recentCompletions) notLaterThan(at time.Time) {
	for i := len(r.done) - 1; i >= 0 && r.done[i].at > at.UnixMilli(); i-- {
		r.done[i].at = at.UnixMilli()
	}
}

// Used is the percent of the window used now: the observation, and what the requests completed since then are expected to
// have taken. A request is in one place: in flight, then completed since, then inside the observation.
func (a *Account) Used(w *Window) float64 { return a.used(w, w.pooledKappa()) }

func (a *Account) used(w *Window, pooled float64) float64 {
	used := w.EstimatePercent
	for i := range a.Completed {
		c := &a.Completed[i]
		if since := c.since(w.Stamp); since > 0 && w.AppliesTo(c.Model) {
			used += since * w.kappaFrom(pooled, c.Model)
		}
	}
	return used
}

// reserved is the percent that the requests in flight are expected to take.
func (a *Account) reserved(w *Window, pooled float64) (percent float64) {
	for i := range a.InFlight {
		if f := &a.InFlight[i]; f.Count > 0 && w.AppliesTo(f.Model) {
			percent += float64(f.Count) * w.kappaFrom(pooled, f.Model)
		}
	}
	return percent
}

// committed is the percent that the sessions that live here are expected to take in so many active hours.
func (a *Account) committed(w *Window, pooled, activeHours float64, at time.Time) (percent float64) {
	perHour := a.Cadence.factor(at)
	for i := range a.Cadence.Models {
		if m := &a.Cadence.Models[i]; m.Count > 0 && w.AppliesTo(m.Model) {
			percent += w.kappaFrom(pooled, m.Model) * m.Count * perHour * activeHours
		}
	}
	return percent
}

// Load is what one window is expected to lose to the work that is known of.
type Load struct {
	// Kappa is the percent per request of the model in question.
	Kappa float64
	// Used, Reserved and Committed are percent of the window: see placement.
	Used, Reserved, Committed float64
	// ActiveHours is F(h), and HoursLeft is h.
	ActiveHours, HoursLeft float64
}

// Load of a window for a session of the model that is to be placed now, with activeHours left to sessions on average (L).
func (a *Account) Load(w *Window, model string, activeHours float64, at time.Time) Load {
	pooled, hoursLeft := w.pooledKappa(), w.HoursLeft(at)
	active := ActiveWithin(hoursLeft, activeHours)
	return Load{
		Kappa: w.kappaFrom(pooled, model),
		Used:  a.used(w, pooled), Reserved: a.reserved(w, pooled), Committed: a.committed(w, pooled, active, at),
		ActiveHours: active, HoursLeft: hoursLeft,
	}
}
