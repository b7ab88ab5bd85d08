package plugin

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of what an adapter may say of windows.
const (
	maxModels      = 32
	maxIDBytes     = 64
	maxModelBytes  = 128
	maxLabelBytes  = 64
	maxLength      = 366 * 24 * time.Hour
	resetSlack     = time.Hour
	resetNoLength  = 366 * 24 * time.Hour
	maxObservedAge = 30 * 24 * time.Hour
	overshoot      = 110 // percent; providers go a little over
	undershoot     = -10
	fullPercent    = 100
)

// windowKinds, windowStates and windowSources are the whole of what is known; anything else is not guessed at.
var (
	windowKinds = map[providerv1.WindowKind]quota.Kind{
		providerv1.WindowKind_WINDOW_KIND_ROLLING:    quota.KindRolling,
		providerv1.WindowKind_WINDOW_KIND_SESSION:    quota.KindSession,
		providerv1.WindowKind_WINDOW_KIND_WEEKLY:     quota.KindWeekly,
		providerv1.WindowKind_WINDOW_KIND_MONTHLY:    quota.KindMonthly,
		providerv1.WindowKind_WINDOW_KIND_INDIVIDUAL: quota.KindIndividual,
		providerv1.WindowKind_WINDOW_KIND_MODEL:      quota.KindModel,
		providerv1.WindowKind_WINDOW_KIND_CREDIT:     quota.KindCredit,
		providerv1.WindowKind_WINDOW_KIND_CONTEXT:    quota.KindContext,
	}
	windowStates = map[providerv1.WindowState]quota.ReportedState{
		providerv1.WindowState_WINDOW_STATE_OBSERVED:           quota.Observed,
		providerv1.WindowState_WINDOW_STATE_EXHAUSTED:          quota.Exhausted,
		providerv1.WindowState_WINDOW_STATE_AWAITING_FIRST_USE: quota.AwaitingFirstUse,
		providerv1.WindowState_WINDOW_STATE_PENDING:            quota.Pending,
		providerv1.WindowState_WINDOW_STATE_NOT_EXPOSED:        quota.NotExposed,
	}
	windowSources = map[providerv1.Source]quota.Source{
		providerv1.Source_SOURCE_OFFICIAL_CLIENT: quota.SourceOfficialClient,
		providerv1.Source_SOURCE_RESPONSE_HEADER: quota.SourceResponseHeader,
		providerv1.Source_SOURCE_RESPONSE_EVENT:  quota.SourceResponseEvent,
		providerv1.Source_SOURCE_STATUSLINE:      quota.SourceStatusline,
	}
)

func windowState(s providerv1.WindowState) quota.ReportedState {
	if state, known := windowStates[s]; known {
		return state
	}
	return quota.Unknown
}

// windowSource takes the adapter's word only where it cannot claim more than the call can have given: a rejection comes
// from the evidence of a rejection and from nowhere else.
func windowSource(s providerv1.Source, natural quota.Source) quota.Source {
	if source, known := windowSources[s]; known {
		return source
	}
	return natural
}

// readings turns an adapter's windows into readings that are safe to keep: finite, in range, bounded, printable. A window
// whose numbers are broken becomes unknown, whatever state it claims; one without a usable id or kind is left out, and so
// is a second one of the same id. sentAt is when what was answered here was asked: a reading may be older, never newer.
func (c *answerCheck) readings(windows []*providerv1.Window, natural quota.Source, sentAt time.Time) []quota.Reading {
	var readings []quota.Reading
	seen := map[string]bool{}
	for _, w := range windows[:min(len(windows), quota.MaxWindows)] {
		r, ok := c.reading(w, natural, sentAt)
		if !ok || seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		readings = append(readings, r)
	}
	return readings
}

func (c *answerCheck) reading(w *providerv1.Window, natural quota.Source, sentAt time.Time) (quota.Reading, bool) {
	declared, sound, ok := c.declaration(w.GetWindowId(), w.GetKind(), w.GetLengthSeconds(), w.GetModels(), w.GetLabel())
	if !ok {
		return quota.Reading{}, false
	}
	r := quota.Reading{
		Declaration: declared,
		State:       windowState(w.GetState()),
		Source:      windowSource(w.GetSource(), natural),
		ObservedAt:  observedAt(w.GetObservedAt(), sentAt),
	}
	if w != nil && w.UsedPercent != nil {
		used, known := usedPercent(*w.UsedPercent)
		r.UsedPercent, r.HasUsed = used, known
		sound = sound && known
	}
	if resets, given := timeOf(w.GetResetsAt()); given {
		if inResetRange(resets, r.ObservedAt, r.Length) {
			r.ResetsAt = resets
		} else if resets.Before(r.ObservedAt) && r.State == quota.Exhausted {
			// What has reset already is not exhausted by the same word.
			sound = false
		}
	}
	switch {
	case !sound:
		r.State = quota.Unknown
	case r.State == quota.Observed && !r.HasUsed:
		r.State = quota.Unknown
	}
	if r.State == quota.Unknown || r.State == quota.Pending || r.State == quota.NotExposed {
		r.UsedPercent, r.HasUsed = 0, false
	}
	return r, true
}

// declaration checks what names a window. sound is false when its length is broken.
func (c *answerCheck) declaration(id string, kind providerv1.WindowKind, seconds int64, models []string, label string) (d quota.Declaration, sound, ok bool) {
	if id == "" || !printable.IsLine(id, maxIDBytes) {
		return d, false, false
	}
	if d.Kind, ok = windowKinds[kind]; !ok {
		return d, false, false
	}
	d.ID = c.text(id, maxIDBytes)
	d.Label = c.text(label, maxLabelBytes)
	for _, model := range models[:min(len(models), maxModels)] {
		if model = c.text(model, maxModelBytes); model != "" {
			d.Models = append(d.Models, model)
		}
	}
	// A scope of which nothing is left must not become a window for all models.
	sound = len(d.Models) > 0 || len(models) == 0
	if seconds < 0 || seconds > int64(maxLength/time.Second) {
		return d, false, true
	}
	d.Length = time.Duration(seconds) * time.Second
	return d, sound, true
}

// usedPercent follows quota's rule: finite first, a little beyond either end is that end, more is a unit error.
func usedPercent(v float64) (float64, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v > overshoot || v < undershoot {
		return 0, false
	}
	// max gives +0 for a negative zero.
	return min(max(v, 0)+0, fullPercent), true
}

func inResetRange(resets, observed time.Time, length time.Duration) bool {
	latest := observed.Add(resetNoLength)
	if length > 0 {
		latest = observed.Add(length + resetSlack)
	}
	return !resets.Before(observed.Add(-resetSlack)) && !resets.After(latest)
}

// observedAt is the earlier of what the adapter says and sentAt, so that an old reading never passes for a new one.
func observedAt(claimed *timestamppb.Timestamp, sentAt time.Time) time.Time {
	at, given := timeOf(claimed)
	if !given || at.After(sentAt) || sentAt.Sub(at) > maxObservedAge {
		return sentAt
	}
	return at
}

// timeOf reads a timestamp that can be written back: absent, invalid and year-one ones are not given.
func timeOf(ts *timestamppb.Timestamp) (time.Time, bool) {
	if ts == nil || ts.CheckValid() != nil || ts.GetSeconds() <= 0 {
		return time.Time{}, false
	}
	return ts.AsTime(), true
}
