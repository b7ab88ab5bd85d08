package quota

import (
	"slices"
	"time"
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

// blockersSee shows a reading of a window to the blockers that it was rejected with: those seen before the reading was
// taken may be cleared by it, or get its reset.
func (a *Account) blockersSee(w *Window, r Reading, same bool) (changed bool) {
	kept := make([]Blocker, 0, len(a.Blockers))
	for _, b := range a.Blockers {
		if b.Window == w.ID && r.ObservedAt.After(b.ObservedAt) {
			if b.clearedBy(r.UsedPercent, same) {
				changed = true
				continue
			}
			if !w.ResetsAt.IsZero() && !b.ClearsAt.Equal(w.ResetsAt) {
				b.ClearsAt, changed = w.ResetsAt, true
			}
		}
		kept = append(kept, b)
	}
	if changed {
		a.Blockers = kept
	}
	return changed
}

// clearUnnamed ends rejections that named no window, if one later read shows room in every window.
func (a *Account) clearUnnamed(readings []Reading) bool {
	unnamed := func(b Blocker) bool { return b.Cause == CauseQuota && b.Window == "" }
	if !slices.ContainsFunc(a.Blockers, unnamed) {
		return false
	}
	oldest, complete := a.completeRead(readings)
	if !complete {
		return false
	}
	before := len(a.Blockers)
	a.Blockers = slices.DeleteFunc(slices.Clone(a.Blockers), func(b Blocker) bool {
		return unnamed(b) && oldest.After(b.ObservedAt)
	})
	return len(a.Blockers) < before
}

// completeRead reports whether the readings show room in every window that is scored, and when the oldest was taken.
func (a *Account) completeRead(readings []Reading) (oldest time.Time, ok bool) {
	for i := range a.Windows {
		w := &a.Windows[i]
		if !w.Scored() {
			continue
		}
		at := slices.IndexFunc(readings, func(r Reading) bool { return r.ID == w.ID })
		if at < 0 {
			return oldest, false
		}
		r, usable := usable(readings[at])
		if !usable || r.UsedPercent > unnamedRoom {
			return oldest, false
		}
		if oldest.IsZero() || r.ObservedAt.Before(oldest) {
			oldest = r.ObservedAt
		}
	}
	return oldest, !oldest.IsZero()
}

// Reject takes the refusal of an attempt with that model that began at began: a blocker, or a cooldown. It reports whether
// blockers changed.
func (a *Account) Reject(r Rejection, model string, began, at time.Time) (changed bool) {
	_, changed = a.Observe(r.Windows, at)
	switch r.Cause {
	case CauseThrottle:
		if pause := throttled(r, at); pause.Until.After(a.Throttle.Until) {
			a.Throttle = pause
		}
		return changed
	case CauseNetwork:
		a.Unreachable(at)
		return changed
	case CauseCredential:
		a.Credential = a.Credential.withoutCredential(at)
		return changed
	case CauseAuth:
		a.put(Blocker{Cause: CauseAuth, ObservedAt: at, AttemptAt: began, Reason: r.Reason})
	case CauseNotEntitled:
		a.put(Blocker{Cause: CauseNotEntitled, Model: r.Model, NoLaterThan: at.Add(entitlementRetry), ObservedAt: at, AttemptAt: began, Reason: r.Reason})
	default:
		a.rejectQuota(r, model, began, at)
	}
	return true
}

func (a *Account) rejectQuota(r Rejection, model string, began, at time.Time) {
	var w *Window
	if r.WindowID != "" {
		if w = a.Window(r.WindowID); w == nil {
			w = a.declareFrom(r)
		}
	} else {
		w = a.infer(r.ClearsAt, model)
	}
	if w == nil {
		r.ClearsAt = plausibleReset(r.ClearsAt, at, a.longest())
		a.put(a.unnamedBlocker(r, model, began, at))
		return
	}
	r.ClearsAt = plausibleReset(r.ClearsAt, at, w.Length)
	b := a.quotaBlocker(w, r, began, at)
	a.put(b)
	w.rejected(b, a.Completed.Clone(), at)
}

// declareFrom makes the window that a rejection names and nobody declared, from the readings in its evidence.
func (a *Account) declareFrom(r Rejection) *Window {
	d := Declaration{ID: r.WindowID}
	for _, reading := range r.Windows {
		if reading.ID == r.WindowID {
			d = reading.Declaration
		}
	}
	return a.declare(d, false)
}

func (a *Account) quotaBlocker(w *Window, r Rejection, began, at time.Time) Blocker {
	b := Blocker{
		Cause: CauseQuota, Model: r.Model, Window: w.ID, ClearsAt: r.ClearsAt,
		ObservedAt: at, AttemptAt: began, ShownPercent: fullPercent, Reason: r.Reason,
	}
	if b.ClearsAt.IsZero() && w.ResetsAt.After(at) {
		b.ClearsAt = w.ResetsAt
	}
	b.NoLaterThan = at.Add(lengthlessRetry)
	if w.Length > 0 {
		b.NoLaterThan = at.Add(w.Length)
	}
	if w.Shown.HasUsed && w.Evidence != EvidenceNone && w.Evidence != EvidenceRolled {
		b.ShownPercent = w.Shown.UsedPercent
	}
	return b
}

// rejected: the window is full, whatever was shown.
func (w *Window) rejected(b Blocker, completed Counts, at time.Time) {
	w.Evidence, w.Distrusted = EvidenceObserved, false
	w.EstimatePercent, w.Stamp = fullPercent, completed
	w.TakenAt, w.ReceivedAt = at, at
	w.ResetsAt, w.PredictedAt = b.ClearsAt, time.Time{}
	w.Baseline = Baseline{}
}

// unnamedBlocker holds until the reset that was given, else until the first window must have given its allowance back.
func (a *Account) unnamedBlocker(r Rejection, model string, began, at time.Time) Blocker {
	b := Blocker{Cause: CauseQuota, Model: r.Model, ClearsAt: r.ClearsAt, ObservedAt: at, AttemptAt: began, Reason: r.Reason}
	for i := range a.Windows {
		w := &a.Windows[i]
		if !w.Scored() || !w.AppliesTo(model) {
			continue
		}
		end := at.Add(w.Length)
		if w.ResetsAt.After(at) {
			end = w.ResetsAt
		}
		if b.NoLaterThan.IsZero() || end.Before(b.NoLaterThan) {
			b.NoLaterThan = end
		}
	}
	if b.NoLaterThan.IsZero() {
		b.NoLaterThan = at.Add(lengthlessRetry)
	}
	return b
}

// infer names the window of a rejection that does not: the one whose reset was given, or the only one that can be full.
func (a *Account) infer(reset time.Time, model string) *Window {
	var full *Window
	for i := range a.Windows {
		w := &a.Windows[i]
		if !w.Scored() || !w.AppliesTo(model) {
			continue
		}
		if !reset.IsZero() {
			if !w.ResetsAt.IsZero() && w.ResetsAt.Sub(reset).Abs() <= resetTolerance {
				return w
			}
			continue
		}
		if w.Evidence == EvidenceNone || a.Used(w)+a.reserved(w) > unnamedRoom {
			if full != nil {
				return nil
			}
			full = w
		}
	}
	if full == nil || full.Evidence == EvidenceNone || a.Used(full) < inferredFull {
		return nil
	}
	return full
}

func (a *Account) reserved(w *Window) float64 {
	var percent float64
	for i := range a.InFlight {
		if f := &a.InFlight[i]; w.AppliesTo(f.Model) {
			percent += float64(f.Count) * w.Kappa(f.Model)
		}
	}
	return percent
}

func (a *Account) longest() time.Duration {
	var longest time.Duration
	for i := range a.Windows {
		longest = max(longest, a.Windows[i].Length)
	}
	return longest
}

// maxBlockers bounds the blockers of an account: models are named by clients.
const maxBlockers = 48

// put adds a blocker, in place of one with the same key.
func (a *Account) put(b Blocker) {
	blockers := slices.DeleteFunc(slices.Clone(a.Blockers), func(old Blocker) bool { return old.Key() == b.Key() })
	if len(blockers) >= maxBlockers {
		oldest := max(slices.IndexFunc(blockers, func(old Blocker) bool { return old.Model != "" }), 0)
		blockers = slices.Delete(blockers, oldest, oldest+1)
	}
	a.Blockers = append(blockers, b)
}
