package quota

import (
	"fmt"
	"strings"
	"time"
)

// ViewState is the state of a window as people see it.
type ViewState string

// States as people see them. Only exhausted blocks.
const (
	ViewFresh      ViewState = "fresh"
	ViewPending    ViewState = "pending"
	ViewNotExposed ViewState = "not_exposed"
	ViewAwaiting   ViewState = "awaiting_first_use"
	ViewStale      ViewState = "stale"
	ViewRolled     ViewState = "rolled"
	ViewExhausted  ViewState = "exhausted"
	ViewUnknown    ViewState = "unknown"
)

// WindowView is one window as people see it. What is unknown is absent.
type WindowView struct {
	Declaration
	State ViewState `json:"state"`
	// UsedPercent is an observation unless Estimated.
	UsedPercent      *float64 `json:"used_percent,omitempty"`
	RemainingPercent *float64 `json:"remaining_percent,omitempty"`
	Estimated        bool     `json:"estimated,omitempty"`
	// ResetsAt is the provider's word unless Predicted.
	ResetsAt   time.Time `json:"resets_at,omitzero"`
	Predicted  bool      `json:"predicted,omitempty"`
	Source     Source    `json:"source,omitempty"`
	Authority  string    `json:"authority,omitempty"`
	ObservedAt time.Time `json:"observed_at,omitzero"`
}

// Views are the windows of the account as people see them at that time, after Settle.
func (a *Account) Views(at time.Time) []WindowView {
	views := make([]WindowView, 0, len(a.Windows))
	for i := range a.Windows {
		views = append(views, a.view(&a.Windows[i], at))
	}
	return views
}

func (a *Account) view(w *Window, at time.Time) WindowView {
	v := WindowView{Declaration: w.Declaration, State: a.viewState(w, at), Source: w.Shown.Source}
	if v.Label == "" {
		v.Label = LengthLabel(w.Length)
	}
	v.ResetsAt, v.Predicted = w.ResetsAt, false
	if w.ResetsAt.IsZero() && !w.PredictedAt.IsZero() {
		v.ResetsAt, v.Predicted = w.PredictedAt, true
	}
	switch v.State {
	case ViewRolled:
		v.setUsed(min(a.Used(w), fullPercent), true)
		v.Source = ""
	case ViewExhausted:
		v.setUsed(fullPercent, false)
		v.ObservedAt = w.TakenAt
		if b := a.rejection(w.ID, at); b != nil && !b.reportedBy(w) {
			v.Source, v.ObservedAt = SourceRejection, b.ObservedAt
		}
	case ViewFresh, ViewStale, ViewAwaiting, ViewNotExposed:
		if w.Shown.HasUsed {
			v.setUsed(min(max(w.Shown.UsedPercent, 0), fullPercent), false)
			v.ObservedAt = w.TakenAt
		}
	}
	v.Authority = authority(v)
	return v
}

func (v *WindowView) setUsed(percent float64, estimated bool) {
	remaining := fullPercent - percent
	v.UsedPercent, v.RemainingPercent, v.Estimated = &percent, &remaining, estimated
}

func authority(v WindowView) string {
	switch {
	case v.Predicted || v.Estimated:
		return "prediction"
	case v.Source == SourceOfficialClient || v.Source == SourceStatusline:
		return "official_client"
	case v.Source == SourceResponseHeader || v.Source == SourceResponseEvent:
		return "response_header"
	}
	return string(v.Source)
}

func (a *Account) viewState(w *Window, at time.Time) ViewState {
	if a.rejected(w.ID, at) || w.shownFull(at) {
		return ViewExhausted
	}
	switch w.State(at) {
	case StateRolled:
		return ViewRolled
	case StateStale:
		return ViewStale
	case StateAwaiting, StatePredicted:
		return ViewAwaiting
	case StateObserved, StateNoReset:
		if w.Shown.State == NotExposed {
			return ViewNotExposed
		}
		return ViewFresh
	}
	switch w.Shown.State {
	case Pending, "":
		if w.Shown.State == "" && w.Shown.HasUsed {
			return ViewUnknown
		}
		return ViewPending
	case NotExposed:
		return ViewNotExposed
	}
	return ViewUnknown
}

// Name is what people call the window: its label, else its length, else its id, and the models that it is for.
func (d Declaration) Name() string {
	name := d.Label
	if name == "" {
		name = d.ID
		if d.Length > 0 {
			name = LengthLabel(d.Length)
		}
	}
	if len(d.Models) > 0 {
		name += " " + strings.Join(d.Models, ",")
	}
	return name
}

// WindowName is the name of the account's window with that id; of none it is the id itself.
func (a *Account) WindowName(id string) string {
	if w := a.Window(id); w != nil {
		return w.Name()
	}
	return id
}

// LengthLabel names a window by its length: meaning comes from the length, never from a transport slot.
func LengthLabel(length time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case length <= 0:
		return "no length"
	case length == 7*day:
		return "weekly"
	case length%day == 0:
		return fmt.Sprintf("%dd", length/day)
	case length%time.Hour == 0:
		return fmt.Sprintf("%dh", length/time.Hour)
	case length%time.Minute == 0:
		return fmt.Sprintf("%dm", length/time.Minute)
	}
	return length.String()
}
