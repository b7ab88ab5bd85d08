package quota

import (
	"math"
	"slices"
	"time"
)

// Without are the account's blockers without those of these causes, which something else than quota ends; ended reports whether
// there were any.
func (a *Account) Without(causes ...Cause) (left []Blocker, ended bool) {
	left = slices.DeleteFunc(slices.Clone(a.Blockers), func(b Blocker) bool { return slices.Contains(causes, b.Cause) })
	return left, len(left) < len(a.Blockers)
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

// clearedBy reports whether an observation of its window, taken after it was seen, ends it.
func (b Blocker) clearedBy(usedPercent float64, same bool) bool {
	return usedPercent < fullPercent &&
		(!same || usedPercent <= math.Min(shownRoomAfterRejection, b.ShownPercent-clearRoomStep))
}
