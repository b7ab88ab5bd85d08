package plugintest

import (
	"math"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// maxWindows is how many windows of one answer a daemon reads.
const maxWindows = 16

// checkWindows applies what holds for windows wherever they come from.
func checkWindows(where string, windows []*providerv1.Window, observed time.Time, f *findings) {
	if len(windows) > maxWindows {
		f.add("report the windows that the provider states, not every field", "%s: %d windows; a daemon reads %d", where, len(windows), maxWindows)
	}
	seen := map[string]bool{}
	for _, w := range windows {
		if w.GetWindowId() == "" || seen[w.GetWindowId()] {
			f.add("give every window an id of its own", "%s: window id %q is empty or there twice", where, w.GetWindowId())
		}
		seen[w.GetWindowId()] = true
		checkWindow(where+": window "+w.GetWindowId(), w, observed, f)
	}
}

func checkWindow(where string, w *providerv1.Window, observed time.Time, f *findings) {
	if w.GetState() == providerv1.WindowState_WINDOW_STATE_UNSPECIFIED || w.GetSource() == providerv1.Source_SOURCE_UNSPECIFIED ||
		w.GetKind() == providerv1.WindowKind_WINDOW_KIND_UNSPECIFIED {
		f.add("set all three", "%s has no state, no source or no kind", where)
	}
	if !w.GetObservedAt().IsValid() || w.GetObservedAt().AsTime().Unix() <= 0 {
		f.add("set the time of the observation that the daemon passed", "%s has no time of observation", where)
	}
	if w.UsedPercent != nil {
		switch used := w.GetUsedPercent(); {
		case math.IsNaN(used) || math.IsInf(used, 0) || used < 0 || used > 100:
			f.add("leave a percentage out that is not finite or far out of range, and clamp the rest to 0..100", "%s has the percentage %v", where, used)
		case !carriesPercentage(w.GetState()):
			f.add("leave the percentage out, or report what was observed as observed", "%s is %s and has a percentage", where, word("WINDOW_STATE_", w.GetState()))
		}
	}
	if w.GetResetsAt() == nil {
		return
	}
	length := time.Duration(w.GetLengthSeconds()) * time.Second
	if length <= 0 || length > 366*24*time.Hour {
		length = 366 * 24 * time.Hour
	}
	reset := w.GetResetsAt().AsTime()
	if !w.GetResetsAt().IsValid() || reset.Before(observed.Add(-time.Hour)) || reset.After(observed.Add(length+time.Hour)) {
		f.add("leave a reset out that lies outside of the window", "%s resets at %s, observed at %s", where, reset.Format(time.RFC3339), observed.Format(time.RFC3339))
	}
}

// carriesPercentage tells the states in which a percentage is known.
func carriesPercentage(state providerv1.WindowState) bool {
	switch state {
	case providerv1.WindowState_WINDOW_STATE_OBSERVED, providerv1.WindowState_WINDOW_STATE_EXHAUSTED,
		providerv1.WindowState_WINDOW_STATE_AWAITING_FIRST_USE:
		return true
	}
	return false
}

// compareWindows compares with what a case wants; exact also refuses windows that it does not want.
func compareWindows(where string, want []Window, got []*providerv1.Window, exact bool, f *findings) {
	const fix = "correct the adapter, or the case"
	byID := map[string]*providerv1.Window{}
	for _, w := range got {
		byID[w.GetWindowId()] = w
	}
	for _, w := range want {
		g, has := byID[w.ID]
		delete(byID, w.ID)
		if !has {
			f.add(fix, "%s: window %s is missing", where, w.ID)
			continue
		}
		if state := word("WINDOW_STATE_", g.GetState()); w.State != "" && state != w.State {
			f.add(fix, "%s: window %s is %s instead of %s", where, w.ID, state, w.State)
		}
		if (w.UsedPercent == nil) != (g.UsedPercent == nil) || w.UsedPercent != nil && math.Abs(*w.UsedPercent-g.GetUsedPercent()) > 0.005 {
			f.add(fix, "%s: window %s: used %s instead of %s", where, w.ID, percent(g.UsedPercent), percent(w.UsedPercent))
		}
		if !w.ResetsAt.IsZero() && (g.GetResetsAt() == nil || !g.GetResetsAt().AsTime().Equal(w.ResetsAt)) {
			f.add(fix, "%s: window %s: resets at %s instead of %s", where, w.ID, moment(g.GetResetsAt().AsTime()), moment(w.ResetsAt))
		}
	}
	for id := range byID {
		if exact {
			f.add(fix, "%s: window %s is not wanted", where, id)
		}
	}
}
