package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Fixtures is what the suite must know of a provider.
type Fixtures struct {
	// Config is the provider block of noria.hcl. Attributes of the type path are relative to Dir.
	Config map[string]any `json:"config"`
	// Accounts to configure. At least one must have a lease.
	Accounts []Account `json:"accounts"`
	// Secrets must never be seen outside a lease, beside the credentials of Accounts and the headers of their leases.
	Secrets []string `json:"secrets"`
	// Environment of the adapter's process, beside the usual.
	Environment map[string]string `json:"environment"`
	// ObservedAt is the time of all cases that name no other; zero: 2026-01-01T00:00:00Z.
	ObservedAt time.Time `json:"observed_at"`
	// Outcomes are failed responses and inspected events, with what they mean. There must be one for each of
	// quota_exhausted, auth_failed, throttled, overloaded and client_error.
	Outcomes []OutcomeCase `json:"outcomes"`
	// Telemetry are accepted responses, with the windows that they show. There must be one, unless every account is
	// unmetered.
	Telemetry []TelemetryCase `json:"telemetry"`
	// Sessions are requests, with the session that they belong to. There must be one with a session and one without,
	// unless the profile has no rule for sessions.
	Sessions []SessionCase `json:"sessions"`
	// Dir is where relative paths begin; [Read] sets it to the directory of the file.
	Dir string `json:"-"`
}

// Account is one account block.
type Account struct {
	Name   string         `json:"name"`
	Config map[string]any `json:"config"`
	// Credential as the daemon would hand it over; a file is relative to Dir.
	Credential Credential `json:"credential"`
	// Refusal is the code that Lease must refuse with, such as signed_out; empty: there must be a lease.
	Refusal string `json:"refusal"`
}

// Credential of an account; at most one field is set.
type Credential struct {
	// Value stands for env in noria.hcl: what the variable holds.
	Value   string   `json:"value"`
	File    string   `json:"file"`
	Command []string `json:"command"`
}

// OutcomeCase is evidence for Classify.
type OutcomeCase struct {
	Name string `json:"name"`
	// Account; empty: the first that has a lease.
	Account string `json:"account"`
	Model   string `json:"model"`
	// Route is the kind of the route; empty: turn.
	Route          string            `json:"route"`
	RequestHeaders map[string]string `json:"request_headers"`
	RequestFields  map[string]string `json:"request_fields"`
	Status         int               `json:"status"`
	Headers        map[string]string `json:"headers"`
	// Body as a JSON value, or as a JSON string for a body that is not JSON.
	Body json.RawMessage `json:"body"`
	// Event of a stream, in place of Body.
	Event      *Event    `json:"event"`
	Committed  bool      `json:"committed"`
	ObservedAt time.Time `json:"observed_at"`
	Want       Verdict   `json:"want"`
}

// Event of a stream.
type Event struct {
	Type string `json:"type"`
	// Data as a JSON value, or as a JSON string for data that is not JSON.
	Data json.RawMessage `json:"data"`
}

// Verdict is the wanted classification. Empty fields, Outcome and Scope aside, are not compared.
type Verdict struct {
	// Outcome and Scope in the words of the protocol, such as quota_exhausted and account.
	Outcome  string    `json:"outcome"`
	Scope    string    `json:"scope"`
	Reason   string    `json:"reason"`
	Model    string    `json:"model"`
	WindowID string    `json:"window_id"`
	ClearsAt time.Time `json:"clears_at"`
	// RetryAfter is a duration such as 30s.
	RetryAfter string   `json:"retry_after"`
	Windows    []Window `json:"windows"`
}

// TelemetryCase is an observation for Observe.
type TelemetryCase struct {
	Name       string            `json:"name"`
	Account    string            `json:"account"`
	Model      string            `json:"model"`
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	Events     []Event           `json:"events"`
	ObservedAt time.Time         `json:"observed_at"`
	// Want are the windows, in any order; windows that are not wanted are a problem.
	Want []Window `json:"want"`
}

// Window that is wanted. Empty fields, ID aside, are not compared.
type Window struct {
	ID    string `json:"id"`
	State string `json:"state"`
	// UsedPercent; absent in a state that carries none.
	UsedPercent *float64  `json:"used_percent"`
	ResetsAt    time.Time `json:"resets_at"`
}

// SessionCase is a request of the client.
type SessionCase struct {
	Name    string            `json:"name"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	// Want is the session; empty: none may be found.
	Want string `json:"want"`
}

// Read reads fixtures from a JSON file. Fields that do not exist are errors, since a case with a misspelt field would
// test nothing.
func Read(file string) (Fixtures, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Fixtures{}, fmt.Errorf("read fixtures: %w", err)
	}
	var f Fixtures
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return Fixtures{}, fmt.Errorf("read fixtures %s: %w", file, err)
	}
	if f.Dir, err = filepath.Abs(filepath.Dir(file)); err != nil {
		return Fixtures{}, fmt.Errorf("read fixtures: %w", err)
	}
	return f, nil
}

// MustRead is Read for tests; it panics when the file cannot be read.
func MustRead(file string) Fixtures {
	f, err := Read(file)
	if err != nil {
		panic(err)
	}
	return f
}

// text gives the bytes that a JSON value stands for: a string's own, and any other value's JSON.
func text(value json.RawMessage) []byte {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return []byte(s)
	}
	return value
}

// enum finds the value of an enumeration by its word, as in quota_exhausted for OUTCOME_QUOTA_EXHAUSTED.
func enum(values map[string]int32, prefix, word string) (int32, bool) {
	value, ok := values[prefix+strings.ToUpper(word)]
	return value, ok && value != 0
}

// word is the inverse of enum.
func word(prefix string, value fmt.Stringer) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

func (f Fixtures) at(own time.Time) time.Time {
	switch {
	case !own.IsZero():
		return own
	case !f.ObservedAt.IsZero():
		return f.ObservedAt
	}
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
}

// leased is the account of cases that name none.
func (f Fixtures) leased() string {
	for _, a := range f.Accounts {
		if a.Refusal == "" {
			return a.Name
		}
	}
	return ""
}

func (f Fixtures) account(own string) string {
	if own != "" {
		return own
	}
	return f.leased()
}

// required are the outcomes that every provider has.
func required() []providerv1.Outcome {
	return []providerv1.Outcome{
		providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED,
		providerv1.Outcome_OUTCOME_AUTH_FAILED,
		providerv1.Outcome_OUTCOME_THROTTLED,
		providerv1.Outcome_OUTCOME_OVERLOADED,
		providerv1.Outcome_OUTCOME_CLIENT_ERROR,
	}
}
