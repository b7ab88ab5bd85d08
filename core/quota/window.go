package quota

import "time"

// Evidence is what our knowledge of a window rests on.
type Evidence string

// Kinds of evidence. The empty one is none: never observed, or a prediction or bound passed without a read.
const (
	EvidenceNone     Evidence = ""
	EvidenceObserved Evidence = "observed"
	EvidenceAwaiting Evidence = "awaiting"
	EvidenceRolled   Evidence = "rolled"
)

// Window is one quota clock of an account: what was declared, what was last known, and what was learned of it. Its lists
// are replaced and never changed, so a copy of the value is a copy.
type Window struct {
	Declaration
	// Declared by the account's profile, so that its absence matters; others appeared in readings.
	Declared bool     `json:"declared,omitempty"`
	Evidence Evidence `json:"evidence,omitempty"`
	// Shown is the percent used as last reported, for people; EstimatePercent is the percent used at Stamp, for
	// placement, and Stamp the completed requests that it is known to include.
	Shown           Shown   `json:"shown,omitzero"`
	EstimatePercent float64 `json:"estimate_percent,omitempty"`
	Stamp           Counts  `json:"stamp,omitempty"`
	// TakenAt is when the evidence was asked for, ReceivedAt when it arrived.
	TakenAt    time.Time `json:"taken_at,omitzero"`
	ReceivedAt time.Time `json:"received_at,omitzero"`
	// ResetsAt is authoritative and PredictedAt is not; zero is unknown.
	ResetsAt    time.Time `json:"resets_at,omitzero"`
	PredictedAt time.Time `json:"predicted_at,omitzero"`
	// Distrusted: the adapter marked the observation as beyond use.
	Distrusted bool          `json:"distrusted,omitempty"`
	Baseline   Baseline      `json:"baseline,omitzero"`
	Learned    []Consumption `json:"learned,omitempty"`

	prior float64 // of Learned, by the length; 0: not computed yet
}

// Shown is the last word of a source, kept for people.
type Shown struct {
	// UsedPercent is valid if HasUsed.
	UsedPercent float64       `json:"used_percent,omitempty"`
	HasUsed     bool          `json:"has_used,omitempty"`
	State       ReportedState `json:"state,omitempty"`
	Source      Source        `json:"source,omitempty"`
}

// State is what placement makes of a window.
type State string

// States in placement.
const (
	StateUnknown   State = "unknown"
	StateObserved  State = "observed"
	StateNoReset   State = "observed_without_reset"
	StateAwaiting  State = "awaiting"
	StatePredicted State = "predicted"
	StateRolled    State = "rolled"
	StateStale     State = "stale"
)

// Known states put an account before those whose windows are not.
func (s State) Known() bool { return s != StateUnknown && s != StateStale }

// Scored windows take part in the score: they have a length, and they measure quota that comes back.
func (w *Window) Scored() bool { return w.Length > 0 && w.Kind.limits() }

// AppliesTo reports whether requests of the model count against the window.
func (w *Window) AppliesTo(model string) bool {
	return len(w.Models) == 0 || ModelMatches(w.Models, model)
}

// State at that time, after Settle.
func (w *Window) State(at time.Time) State {
	switch {
	case w.Evidence == EvidenceNone:
		return StateUnknown
	case w.Distrusted:
		return StateStale
	case w.Evidence == EvidenceRolled:
		return StateRolled
	case w.Length > 0 && at.Sub(w.ReceivedAt) > w.Length:
		return StateStale
	case w.Evidence == EvidenceAwaiting && !w.PredictedAt.IsZero():
		return StatePredicted
	case w.Evidence == EvidenceAwaiting:
		return StateAwaiting
	case w.ResetsAt.IsZero():
		return StateNoReset
	}
	return StateObserved
}

// HoursLeft is h: to the authoritative reset, else to the predicted one, else the whole length; at least a minute.
func (w *Window) HoursLeft(at time.Time) float64 {
	left := w.Length
	switch {
	case !w.ResetsAt.IsZero():
		left = w.ResetsAt.Sub(at)
	case !w.PredictedAt.IsZero():
		left = w.PredictedAt.Sub(at)
	}
	return max(left, time.Minute).Hours()
}

// settle lets time pass: an authoritative reset that is behind us empties the window, a prediction that is behind us
// proves nothing. completedAt tells the requests completed up to a time.
func (w *Window) settle(at time.Time, completedAt func(time.Time) Counts) (changed bool) {
	if reset := w.ResetsAt; !reset.IsZero() && !at.Before(reset) {
		counts := completedAt(reset)
		w.Evidence, w.Distrusted = EvidenceRolled, false
		w.EstimatePercent, w.Stamp, w.TakenAt = 0, counts, reset
		w.ResetsAt, w.PredictedAt = time.Time{}, time.Time{}
		w.Baseline = Baseline{Valid: true, Completed: counts}
		changed = true
	}
	if !w.PredictedAt.IsZero() && !at.Before(w.PredictedAt) {
		w.forget()
		changed = true
	}
	return changed
}

// forget what was known of the instance; what was learned of the window stays.
func (w *Window) forget() {
	w.Evidence, w.Distrusted = EvidenceNone, false
	w.EstimatePercent, w.Stamp = 0, nil
	w.ResetsAt, w.PredictedAt = time.Time{}, time.Time{}
	w.Baseline = Baseline{}
}

// shownFull: telemetry shows nothing left of the present instance. Credits keep work away only when they are said to be
// exhausted, a context never does.
func (w *Window) shownFull(at time.Time) bool {
	blocks := w.Kind.limits() || w.Kind == KindCredit && w.Shown.State == Exhausted
	return blocks && w.Evidence == EvidenceObserved && w.Shown.HasUsed && w.Shown.UsedPercent >= fullPercent && w.State(at) != StateStale
}

const fullPercent = 100

// started notes accepted work: the clock of a window that awaits its first use begins. The first one counts.
func (w *Window) started(at time.Time) (changed bool) {
	if w.Evidence != EvidenceAwaiting || !w.ResetsAt.IsZero() || !w.PredictedAt.IsZero() || w.Length <= 0 {
		return false
	}
	w.PredictedAt = at.Add(w.Length)
	return true
}

// notLaterThan clamps when the evidence was taken, after the wall clock went back.
func (w *Window) notLaterThan(at time.Time) {
	if w.TakenAt.After(at) {
		w.TakenAt, w.ResetsAt = at, plausibleReset(w.ResetsAt, at, w.Length)
	}
	if w.ReceivedAt.After(at) {
		w.ReceivedAt = at
	}
}
