package quota

import "time"

// Providers recompute resets with jitter: within this tolerance, and a hundredth of the length, it is the same reset.
const (
	resetTolerance      = 2 * time.Minute
	resetToleranceShare = 100
	// instanceSlack is how far a percentage may fall within one instance of a window.
	instanceSlack = 1
)

// Observe takes what one source reported in one read. received is when it arrived; each reading says when it was asked
// for. It reports whether anything durable changed and whether blockers did.
func (a *Account) Observe(readings []Reading, received time.Time) (changed, blockers bool) {
	a.Settle(received)
	for _, reading := range readings {
		took, cleared := a.observeOne(reading, received)
		changed, blockers = changed || took, blockers || cleared
	}
	if a.clearUnnamed(readings) {
		changed, blockers = true, true
	}
	return changed, blockers
}

func (a *Account) observeOne(r Reading, received time.Time) (changed, blockers bool) {
	w := a.Window(r.ID)
	if w == nil || (!w.Declared && r.Length > 0 && w.Length != r.Length) {
		if w = a.declare(r.Declaration, false); w == nil {
			return false, false
		}
	}
	reading, ok := usable(r)
	if !ok {
		w.note(r)
		return true, false
	}
	reading.ResetsAt = plausibleReset(reading.ResetsAt, reading.ObservedAt, w.Length)
	taken, same := w.observe(reading, a.completedAt(reading.ObservedAt.Add(-a.UsageLag)), received)
	if !taken {
		return false, false
	}
	blockers = a.blockersSee(w, reading, same)
	if a.blocksLikeRejection(reading) && !a.rejected(w.ID, received) {
		spent := Rejection{Cause: CauseQuota, WindowID: w.ID, ClearsAt: w.ResetsAt, Reason: reasonExhausted}
		a.put(a.quotaBlocker(w, spent, reading.ObservedAt, received))
		blockers = true
	}
	w.settle(received, a.completedAt)
	return true, blockers
}

// plausibleReset drops a reset that the window's length rules out.
func plausibleReset(reset, observed time.Time, length time.Duration) time.Time {
	if reset.IsZero() {
		return reset
	}
	longest := length + time.Hour
	if length <= 0 {
		longest = 366 * 24 * time.Hour
	}
	if reset.Before(observed.Add(-time.Hour)) || reset.After(observed.Add(longest)) {
		return time.Time{}
	}
	return reset
}

const reasonExhausted = "reported_exhausted"

// reportedBy tells a blocker that rests on what the window shows from one that rests on a refusal.
func (b *Blocker) reportedBy(w *Window) bool {
	return b.Reason == reasonExhausted && w.Shown.HasUsed && w.Shown.UsedPercent >= fullPercent
}

// blocksLikeRejection: a rejection's own evidence says that this window is exhausted; or an accepted answer does, and what
// follows would spend extra credits that the user did not allow.
func (a *Account) blocksLikeRejection(r Reading) bool {
	if r.State != Exhausted {
		return false
	}
	switch r.Source {
	case SourceRejection:
		return true
	case SourceResponseHeader, SourceResponseEvent:
		return !a.AllowOverage
	}
	return false
}

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
