package events

import (
	"strings"
	"time"
)

// Event is one thing that happened.
type Event struct {
	// Sequence is given by [List.Record]; it grows by one with every event while the process lives.
	Sequence  uint64    `json:"sequence"`
	At        time.Time `json:"at"`
	Component Component `json:"component"`
	Operation Operation `json:"operation"`
	// State of an adapter that the operation led to.
	State State `json:"state,omitempty"`

	// RequestID is the daemon's own id of a client request, as in the x-noria-request header.
	RequestID string `json:"request,omitempty"`
	Attempt   uint64 `json:"attempt,omitempty"`
	// SessionHash is a short hash of the session, never its identity.
	SessionHash string `json:"session,omitempty"`
	Provider    string `json:"provider,omitempty"`
	Account     string `json:"account,omitempty"`
	// From is the account that a session or request left, for failovers, detours and moves.
	From  string `json:"from,omitempty"`
	Model string `json:"model,omitempty"`

	// Route is the kind of the route: turn, placed, aux, local, own.
	Route   Route   `json:"route,omitempty"`
	Status  int     `json:"status,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  Reason  `json:"reason,omitempty"`

	Duration time.Duration `json:"duration_ns,omitempty"`
	// FirstByte is the time from the request's last byte read to the answer's first byte written.
	FirstByte time.Duration `json:"first_byte_ns,omitempty"`
	// Overhead is the part of FirstByte that was spent in the daemon itself.
	Overhead  time.Duration `json:"overhead_ns,omitempty"`
	BytesUp   int64         `json:"bytes_up,omitempty"`
	BytesDown int64         `json:"bytes_down,omitempty"`
}

// Sanitized returns the event with every field that is not what it claims to be replaced: words that are on no list by
// unlisted, names and codes that could be a secret or could not be printed by [Redacted], negative numbers by 0. Of an
// attempt, a failover and a detour the reason may be any code in snake_case, since an adapter gives it.
func (e Event) Sanitized() Event {
	e.At = e.At.UTC()
	e.Component = listed(e.Component, components)
	e.Operation = listed(e.Operation, operations)
	e.State = listed(e.State, states)
	e.Route = listed(e.Route, routes)
	e.Outcome = listed(e.Outcome, outcomes)
	if verdicts(e.Operation) {
		e.Reason = verdictReason(e.Reason)
	} else {
		e.Reason = listed(e.Reason, reasons)
	}

	e.RequestID = identifier(e.RequestID)
	e.SessionHash = identifier(e.SessionHash)
	e.Provider = name(e.Provider)
	e.Account = name(e.Account)
	e.From = name(e.From)
	e.Model = name(e.Model)

	e.Duration = max(e.Duration, 0)
	e.FirstByte = max(e.FirstByte, 0)
	e.Overhead = max(e.Overhead, 0)
	e.BytesUp = max(e.BytesUp, 0)
	e.BytesDown = max(e.BytesDown, 0)
	if e.Status < 0 || e.Status > 999 {
		e.Status = 0
	}
	return e
}

// Limits of the names that an event carries, in bytes.
const (
	maxIdentifier = 40
	maxName       = 96
)

// identifier passes what the daemon itself makes: short, letters, digits and dashes.
func identifier(s string) string {
	if len(s) > maxIdentifier || secretShaped(s) {
		return Redacted
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return Redacted
		}
	}
	return s
}

// name passes names of accounts, models and windows. Model names are the client's own words, so nothing is taken on trust.
func name(s string) string {
	if len(s) > maxName || secretShaped(s) || longestRun(s) >= minRun {
		return Redacted
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && !strings.ContainsRune("._:/@+*-[]", rune(s[i])) {
			return Redacted
		}
	}
	return s
}

// minRun is longer than any word of a model's or an account's name, and shorter than a credential.
const minRun = 24

// longestRun is the length of the longest run of letters and digits.
func longestRun(s string) (longest int) {
	run := 0
	for i := range len(s) {
		if run++; !isAlphanumeric(s[i]) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
