package placement

import (
	"encoding/json"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// Request is one attempt that wants an account.
type Request struct {
	// Attempt identifies this try; unique while the process lives.
	Attempt uint64
	// RequestID groups the attempts of one client request.
	RequestID string
	// Session is the session key, provider/identity; empty: placed alone, binds nothing.
	Session  string
	Provider string
	// Model is the exact model asked for, empty when unknown.
	Model string
	// Binds is true for turns.
	Binds bool
	// Detour: the session's account is throttled; this attempt goes elsewhere and its acceptance binds nothing.
	Detour bool
	// Tried accounts of this request, in order.
	Tried []quota.AccountID
	At    time.Time
}

// How an account was chosen.
type How string

// Ways to choose.
const (
	HowBound    How = "bound"
	HowFollow   How = "follow"
	HowSibling  How = "sibling"
	HowKnown    How = "known"
	HowCautious How = "cautious"
)

// Decision is the answer, with its reasoning.
type Decision struct {
	// Placed is false when no account can serve.
	Placed  bool            `json:"placed"`
	Account quota.AccountID `json:"account,omitzero"`
	How     How             `json:"how,omitempty"`
	Score   float64         `json:"score"`
	// Margin to the best other candidate of the same class. It may be negative for a cautious attempt: there the score
	// comes last.
	Margin float64 `json:"margin"`
	// Bound: the session and model had a binding to Account when this was decided.
	Bound bool `json:"bound"`
	// Candidates are all accounts of the provider, with what filtered them or their terms; nil when the decision took
	// none (bound, follow, sibling).
	Candidates []Candidate `json:"candidates,omitempty"`
	// Forecast is set when nothing was placed.
	Forecast Forecast  `json:"forecast,omitzero"`
	At       time.Time `json:"at"`
}

// ForecastKind says how much a forecast is worth.
type ForecastKind string

// Kinds of forecasts.
const (
	ForecastExact       ForecastKind = "exact"
	ForecastNoLaterThan ForecastKind = "no_later_than"
	ForecastUnknown     ForecastKind = "unknown"
)

// Forecast is the earliest time at which all blockers of at least one account can have cleared.
type Forecast struct {
	Kind ForecastKind `json:"kind"`
	// At is zero when Kind is ForecastUnknown.
	At time.Time `json:"at,omitzero"`
	// Account that is free first, and the window that governs it (empty when mixed or unknown). When no clock frees any it
	// is the one that has to be signed in to, if that is one alone.
	Account quota.AccountID `json:"account,omitzero"`
	Window  string          `json:"window,omitempty"`
	// Causes count each account of the provider once, by what keeps it away.
	Causes map[string]int `json:"causes,omitempty"`
}

// Candidate is one account in a decision.
type Candidate struct {
	Account quota.AccountID `json:"account"`
	// Filtered names the step that dropped it: disabled, model, blocked, tried, cooldown; empty: it was scored.
	Filtered string `json:"filtered,omitempty"`
	// Detail in words for Filtered. ClearsAt is when that ends, or else NoLaterThan, if it is known.
	Detail      string    `json:"detail,omitempty"`
	ClearsAt    time.Time `json:"clears_at,omitzero"`
	NoLaterThan time.Time `json:"no_later_than,omitzero"`
	// Class by what is known of its windows; empty if it was not scored.
	Class Class   `json:"class,omitempty"`
	Score float64 `json:"score"`
	// Room: no applicable window is full on the last evidence. Unconfirmed counts cautious attempts under way.
	Room        bool `json:"room"`
	Unconfirmed int  `json:"unconfirmed,omitempty"`
	// Work is live sessions and requests in flight; it and PlacedAt break ties.
	Work     int       `json:"work"`
	PlacedAt time.Time `json:"placed_at,omitzero"`
	Terms    []Term    `json:"terms,omitempty"`
}

// Known reports whether all windows that count are in a known state.
func (c *Candidate) Known() bool { return c.Class == ClassKnown }

// Term is the arithmetic of one applicable window; see the package documentation for the symbols. Of a window in state
// unknown it has no numbers.
type Term struct {
	// Window is its id, Name what people call it.
	Window string `json:"window"`
	Name   string `json:"name"`
	State  string `json:"state"`
	// Observed is the percent used as it was last reported, valid if HasObserved; all below is reckoned.
	Observed    float64 `json:"observed,omitempty"`
	HasObserved bool    `json:"has_observed,omitempty"`
	Kappa       float64 `json:"kappa"`
	Used        float64 `json:"used"`
	Reserved    float64 `json:"reserved"`
	Committed   float64 `json:"committed"`
	New         float64 `json:"new"`
	HoursLeft   float64 `json:"hours_left"`
	Rate        float64 `json:"rate"`
	Sustainable float64 `json:"sustainable"`
}

// Known reports whether anything is known of the window.
func (t *Term) Known() bool { return t.State != string(quota.StateUnknown) }

// MarshalJSON leaves out the numbers of a window of which nothing is known: they would say 0.
func (t Term) MarshalJSON() ([]byte, error) {
	if !t.Known() {
		return json.Marshal(map[string]string{"window": t.Window, "name": t.Name, "state": t.State})
	}
	type plain Term
	return json.Marshal(plain(t))
}

// Acceptance is what became of the binding when the upstream accepted an attempt's work.
type Acceptance struct {
	// Sequence must be durable before the first byte goes to the client; 0 waits for nothing.
	Sequence uint64
	// Home is the account that the session and model are bound to from now on; zero: to none.
	Home quota.AccountID
	// Bound: this acceptance bound them there, and took them From another account, zero if they had none.
	Bound bool
	From  quota.AccountID
}
