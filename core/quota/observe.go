package quota

import "time"

// Providers recompute resets with jitter: within this tolerance, and a hundredth of the length, it is the same reset.
const (
	resetTolerance      = 2 * time.Minute
	resetToleranceShare = 100
	// instanceSlack is how far a percentage may fall within one instance of a window.
	instanceSlack = 1
)

// sameInstance reports whether a reading speaks of the instance of the window that is known.
func (w *Window) sameInstance(r Reading) bool {
	switch {
	case w.Evidence == EvidenceNone, w.Evidence == EvidenceRolled:
		return false
	case !w.ResetsAt.IsZero() && r.State == AwaitingFirstUse:
		return false
	case !w.ResetsAt.IsZero() && !r.ResetsAt.IsZero() &&
		r.ResetsAt.Sub(w.ResetsAt).Abs() > resetTolerance+w.Length/resetToleranceShare:
		return false
	case w.Shown.HasUsed && r.UsedPercent < w.Shown.UsedPercent-instanceSlack:
		return false
	}
	return true
}

// usable brings a reading into the form that observe takes: a percentage it carries or implies. ok is false for a reading
// that says nothing of the percentage.
func usable(r Reading) (reading Reading, ok bool) {
	switch r.State {
	case Exhausted:
		r.UsedPercent, r.HasUsed = fullPercent, true
	case AwaitingFirstUse:
		if !r.HasUsed {
			r.UsedPercent, r.HasUsed = 0, true
		}
		r.ResetsAt = time.Time{}
	case Observed:
	default:
		return r, false
	}
	return r, r.HasUsed
}

// observe takes a usable reading. completed are the requests that it is known to include. It reports whether the reading
// was taken, and whether it spoke of the instance known before; an older one is ignored.
func (w *Window) observe(r Reading, completed Counts, received time.Time) (taken, same bool) {
	if w.Evidence != EvidenceNone && r.ObservedAt.Before(w.TakenAt) {
		return false, false
	}
	same = w.sameInstance(r)
	if !same && w.Evidence != EvidenceRolled {
		w.Baseline = Baseline{}
	}
	w.learn(r.UsedPercent, completed)
	w.EstimatePercent, w.Stamp = r.UsedPercent, completed
	w.TakenAt, w.ReceivedAt, w.Distrusted = r.ObservedAt, received, false
	w.Shown = Shown{UsedPercent: r.UsedPercent, HasUsed: true, State: r.State, Source: r.Source}
	w.observeReset(r, same)
	return true, same
}

func (w *Window) observeReset(r Reading, same bool) {
	awaiting := w.Evidence == EvidenceAwaiting
	switch {
	case r.State == AwaitingFirstUse:
		if !awaiting {
			w.PredictedAt = time.Time{}
		}
		w.ResetsAt, w.Evidence = time.Time{}, EvidenceAwaiting
	case !r.ResetsAt.IsZero():
		w.ResetsAt, w.PredictedAt, w.Evidence = r.ResetsAt, time.Time{}, EvidenceObserved
	case awaiting && same:
		// Used, and no reset yet: the prediction of the running instance is still the best there is.
	default:
		if !same {
			w.ResetsAt, w.PredictedAt = time.Time{}, time.Time{}
		}
		w.Evidence = EvidenceObserved
	}
}

// note keeps a reading that carries no percentage, for people. One that says unknown marks the observation as beyond use.
func (w *Window) note(r Reading) {
	if w.Evidence != EvidenceNone && r.ObservedAt.Before(w.TakenAt) {
		return
	}
	w.Shown.State, w.Shown.Source = r.State, r.Source
	if r.State == Unknown && w.Evidence != EvidenceNone && w.Evidence != EvidenceRolled {
		w.Distrusted = true
	}
}
