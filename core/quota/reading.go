package quota

import "time"

// Kind of a window. Meaning comes from the length, never from a transport slot.
type Kind string

// Kinds of windows.
const (
	KindRolling    Kind = "rolling"
	KindSession    Kind = "session"
	KindWeekly     Kind = "weekly"
	KindMonthly    Kind = "monthly"
	KindIndividual Kind = "individual"
	KindModel      Kind = "model"
	KindCredit     Kind = "credit"
	KindContext    Kind = "context"
)

// limits reports whether windows of the kind limit an account's work. A context belongs to one conversation, and credits
// are what is spent beyond the limits.
func (k Kind) limits() bool { return k != KindContext && k != KindCredit }

// ReportedState is what an adapter says of a window.
type ReportedState string

// States that adapters report.
const (
	Observed         ReportedState = "observed"
	Exhausted        ReportedState = "exhausted"
	AwaitingFirstUse ReportedState = "awaiting_first_use"
	Pending          ReportedState = "pending"
	NotExposed       ReportedState = "not_exposed"
	Unknown          ReportedState = "unknown"
)

// Source of a reading; it decides the authority.
type Source string

// Sources.
const (
	SourceOfficialClient Source = "official_client"
	SourceResponseHeader Source = "response_header"
	SourceResponseEvent  Source = "response_event"
	SourceRejection      Source = "rejection"
	SourceStatusline     Source = "statusline"
)

// Declaration says that an account has a window, so that one never read is unknown rather than absent.
type Declaration struct {
	ID     string        `json:"id"`
	Kind   Kind          `json:"kind"`
	Length time.Duration `json:"length"`
	// Models are names or patterns with *; empty: all models.
	Models []string `json:"models,omitempty"`
	Label  string   `json:"label,omitempty"`
}

// Reading is one window as a source reported it, checked at the edge: finite, 0 to 100, resets in range. What is absent
// is unknown.
type Reading struct {
	Declaration
	// UsedPercent is valid if HasUsed.
	UsedPercent float64       `json:"used_percent"`
	HasUsed     bool          `json:"has_used"`
	ResetsAt    time.Time     `json:"resets_at,omitzero"`
	State       ReportedState `json:"state"`
	Source      Source        `json:"source"`
	// ObservedAt is when the probe, or the request whose answer carries the reading, was sent.
	ObservedAt time.Time `json:"observed_at"`
}

// Cause of a blocker or a cooldown.
type Cause string

// Causes.
const (
	CauseQuota       Cause = "quota"
	CauseAuth        Cause = "auth"
	CauseNotEntitled Cause = "not_entitled"
	CauseThrottle    Cause = "throttle"
	CauseNetwork     Cause = "network"
	CauseCredential  Cause = "credential"
)

// Rejection is an upstream's refusal of an attempt, in the host's words.
type Rejection struct {
	Cause Cause
	// Model is set when the scope is one model of the account.
	Model string
	// WindowID is set when the rejection named a window.
	WindowID string
	// ClearsAt is zero when unknown.
	ClearsAt time.Time
	// RetryAfter is the hint of a throttle; 0 unknown.
	RetryAfter time.Duration
	// Reason is an allow-listed code in snake_case.
	Reason string
	// Windows seen in the evidence.
	Windows []Reading
}
