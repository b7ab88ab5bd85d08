package quota

import (
	"slices"
	"time"
)

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
		if w.Evidence == EvidenceNone || a.Used(w)+a.reserved(w, w.pooledKappa()) > unnamedRoom {
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

func (a *Account) longest() time.Duration {
	var longest time.Duration
	for i := range a.Windows {
		longest = max(longest, a.Windows[i].Length)
	}
	return longest
}

// MaxBlockers bounds the blockers of an account: models are named by clients.
const MaxBlockers = 48

// put adds a blocker, in place of one with the same key.
func (a *Account) put(b Blocker) {
	blockers := slices.DeleteFunc(slices.Clone(a.Blockers), func(old Blocker) bool { return old.Key() == b.Key() })
	if len(blockers) >= MaxBlockers {
		oldest := max(slices.IndexFunc(blockers, func(old Blocker) bool { return old.Model != "" }), 0)
		blockers = slices.Delete(blockers, oldest, oldest+1)
	}
	a.Blockers = append(blockers, b)
}
