package api

import (
	"strings"
	"time"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// Version of the control API; it is the first element of every path.
const Version = "v1"

// VersionInfo says what runs.
type VersionInfo struct {
	Version string `json:"version"`
	API     string `json:"api"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// DaemonState is what a daemon is doing.
type DaemonState string

// States of a daemon.
const (
	StateStarting DaemonState = "starting"
	StateReady    DaemonState = "ready"
	StateDraining DaemonState = "draining"
)

// Status is the daemon at a glance.
type Status struct {
	Version   string      `json:"version"`
	State     DaemonState `json:"state"`
	PID       int         `json:"pid"`
	StartedAt time.Time   `json:"started_at"`
	// Config is the file, Generation grows with every configuration that was applied.
	Config     string `json:"config"`
	Generation uint64 `json:"generation"`
	// Listen addresses of the proxy.
	Listen []string `json:"listen"`
	// Journal is ok, degraded, or none when state is in memory only.
	Journal string `json:"journal"`
	// StateFindings are what recovery found in the state directory, and what is wrong with it now.
	StateFindings []StateFinding `json:"state_findings,omitempty"`

	Sessions  int              `json:"sessions"`
	Streams   int              `json:"streams"`
	Providers []ProviderStatus `json:"providers"`
	Accounts  []Account        `json:"accounts"`
	At        time.Time        `json:"at"`
}

// StateFinding is one thing about the state directory that a person may want to know.
type StateFinding struct {
	// Level is note, warning or fault.
	Level string `json:"level"`
	What  string `json:"what"`
	Where string `json:"where"`
	Do    string `json:"do"`
}

// ProviderStatus is a provider at a glance.
type ProviderStatus struct {
	Name string `json:"name"`
	// Adapter is the state of its process.
	Adapter string `json:"adapter"`
	// Unchecked: its executable is not checked against a digest (dev = true).
	Unchecked bool `json:"unchecked,omitempty"`
	// Usable counts the accounts that can serve now.
	Usable int `json:"usable"`
	// Forecast is set when none can.
	Forecast *placement.Forecast `json:"forecast,omitempty"`
}

// Account is one account with its clocks.
type Account struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	// Enabled in noria.hcl and by the operator's switch.
	Enabled bool `json:"enabled"`
	// DisabledBy is config or operator.
	DisabledBy string   `json:"disabled_by,omitempty"`
	Models     []string `json:"models,omitempty"`
	Overage    string   `json:"overage,omitempty"`
	// Auth is signed_in, signed_out, expired, not_eligible, unavailable or unknown; AuthDetail says why when its login gives no
	// lease, such as that its file cannot be read (then it is unavailable).
	Auth       string `json:"auth"`
	AuthDetail string `json:"auth_detail,omitempty"`
	// Usable: enabled, not without a login, and without a blocker for the whole account.
	Usable   bool      `json:"usable"`
	Windows  []Window  `json:"windows"`
	Blockers []Blocker `json:"blockers"`
	// Sessions bound here, requests in flight.
	Sessions int `json:"sessions"`
	InFlight int `json:"in_flight"`
	// ProbeError says why the last read of its quota failed; empty when it did not.
	ProbeError string `json:"probe_error,omitempty"`
}

// ID names the account.
func (a Account) ID() quota.AccountID { return quota.AccountID{Provider: a.Provider, Name: a.Name} }

// Window is one quota clock as people see it.
type Window struct {
	ID    string     `json:"id"`
	Kind  quota.Kind `json:"kind"`
	Label string     `json:"label"`
	// LengthSeconds is 0 when the provider states none.
	LengthSeconds int64    `json:"length_seconds,omitempty"`
	Models        []string `json:"models,omitempty"`
	// State is fresh, observed, pending, not_exposed, awaiting_first_use, stale, rolled, exhausted or unknown. What was read
	// longer ago than twice the refresh interval is observed and no longer fresh.
	State string `json:"state"`
	// UsedPercent and RemainingPercent are absent when unknown.
	UsedPercent      *float64 `json:"used_percent,omitempty"`
	RemainingPercent *float64 `json:"remaining_percent,omitempty"`
	// Estimated: the percentage is the host's estimate and not an observation.
	Estimated bool `json:"estimated,omitempty"`
	// ResetsAt is zero when unknown; Predicted says that the provider has not stated it.
	ResetsAt   time.Time    `json:"resets_at,omitzero"`
	Predicted  bool         `json:"predicted,omitempty"`
	Source     quota.Source `json:"source,omitempty"`
	ObservedAt time.Time    `json:"observed_at,omitzero"`
}

// Blocker is a reason why an account cannot serve now.
type Blocker struct {
	Cause quota.Cause `json:"cause"`
	// Model is empty when the whole account is blocked.
	Model  string `json:"model,omitempty"`
	Window string `json:"window,omitempty"`
	// Reason is a code such as usage_limit_reached.
	Reason string `json:"reason,omitempty"`
	// ClearsAt is zero when unknown; NoLaterThan then bounds it, if anything does.
	ClearsAt    time.Time `json:"clears_at,omitzero"`
	NoLaterThan time.Time `json:"no_later_than,omitzero"`
	ObservedAt  time.Time `json:"observed_at"`
	// Shown: nothing but telemetry says that the window is used up. It keeps new sessions away and moves none.
	Shown bool `json:"shown,omitempty"`
	// Cooldown: a short pause, which moves no session.
	Cooldown bool `json:"cooldown,omitempty"`
}

// Session is a client conversation and where it lives.
type Session struct {
	// Key is provider/identity, Hash what logs and events show of it.
	Key      string    `json:"key"`
	Hash     string    `json:"hash"`
	Provider string    `json:"provider"`
	Bindings []Binding `json:"bindings"`
	// LastUsed of its bindings.
	LastUsed time.Time `json:"last_used"`
	InFlight int       `json:"in_flight"`
}

// Binding is (session, model) → account.
type Binding struct {
	Model    string    `json:"model"`
	Account  string    `json:"account"`
	BoundAt  time.Time `json:"bound_at"`
	LastUsed time.Time `json:"last_used"`
	// BoundBy is initial, failover or operator.
	BoundBy string `json:"bound_by"`
	Cause   string `json:"cause,omitempty"`
	// Moves before it came here, oldest first.
	Moves []Move `json:"moves,omitempty"`
}

// Move is an earlier change of a binding's account. From and To are PROVIDER/NAME.
type Move struct {
	From  string    `json:"from"`
	To    string    `json:"to"`
	At    time.Time `json:"at"`
	By    string    `json:"by"`
	Cause string    `json:"cause,omitempty"`
}

// SessionFilter selects sessions.
type SessionFilter struct {
	// Provider and Account, empty for all.
	Provider, Account string
	// Limit of the answer, newest first; 0 means 1000.
	Limit int
}

// SessionDetail is a session with what happened to it.
type SessionDetail struct {
	Session
	// History of its moves, oldest first.
	History []Event `json:"history"`
}

// Plugin is one adapter process.
type Plugin struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Version  string `json:"version"`
	SDK      string `json:"sdk"`
	// Status is disabled, starting, configuring, ready, draining, backoff, failed, stopped or offline.
	Status string `json:"status"`
	PID    int    `json:"pid,omitempty"`
	// StartedAt of the present process.
	StartedAt time.Time `json:"started_at,omitzero"`
	Restarts  int       `json:"restarts"`
	Accounts  int       `json:"accounts"`
	SHA256    string    `json:"sha256"`
	// Digest is ok, mismatch, unpinned, dev when the check is waived, or unknown when the file was not read.
	Digest string `json:"digest"`
	// Source is bundled, the path from the plugin directory's own name on, or the whole path when it lies elsewhere.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Reason is a code and Detail a sentence when it is not ready.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// RetryAt of a plugin in backoff.
	RetryAt time.Time `json:"retry_at,omitzero"`
	Dev     bool      `json:"dev,omitempty"`
}

// PluginDetail is a plugin with what it offers.
type PluginDetail struct {
	Plugin
	Services        []string    `json:"services"`
	Environment     []string    `json:"environment"`
	ConfigSchema    []Attribute `json:"config_schema"`
	AccountSchema   []Attribute `json:"account_schema"`
	AccountNames    []string    `json:"account_names"`
	LastStderr      []string    `json:"last_stderr,omitempty"`
	DroppedLogLines uint64      `json:"dropped_log_lines,omitempty"`
}

// Attribute of a plugin's schema.
type Attribute struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Required  bool   `json:"required,omitempty"`
	Sensitive bool   `json:"sensitive,omitempty"`
	Default   string `json:"default,omitempty"`
	Doc       string `json:"doc,omitempty"`
}

// AttributesOf lists what a plugin's schema says.
func AttributesOf(schema *pluginv1.Schema) []Attribute {
	attributes := make([]Attribute, 0, len(schema.GetAttributes()))
	for _, a := range schema.GetAttributes() {
		attributes = append(attributes, Attribute{
			Name: a.GetName(), Type: strings.ToLower(strings.TrimPrefix(a.GetType().String(), "ATTRIBUTE_TYPE_")),
			Required: a.GetRequired(), Sensitive: a.GetSensitive(), Default: a.GetDefaultJson(), Doc: a.GetDoc(),
		})
	}
	return attributes
}

// Event is one thing that happened.
type Event = events.Event

// ExplainRequest asks why: about a session, about a request, or about a session that would be new.
type ExplainRequest struct {
	// Subject is a session key, an identity, a session hash or a request id; at least a unique beginning.
	Subject string `json:"subject,omitempty"`
	// Provider and Model of a new session, when Subject is empty.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// Explanation is why a session is where it is, and what its next request would get.
type Explanation struct {
	// Session is nil for a session that would be new, and for requests without one.
	Session *Session `json:"session,omitempty"`
	Request string   `json:"request,omitempty"`
	Model   string   `json:"model,omitempty"`
	// Last is the newest decision that chose an account for it in this life of the daemon.
	Last *placement.Decision `json:"last,omitempty"`
	// Now is what the next request would get; nothing was reserved.
	Now *placement.Decision `json:"now,omitempty"`
	// Reservations for its requests that were placed anew and have not ended.
	Reservations []Reservation `json:"reservations,omitempty"`
	// History of the session or request, oldest first.
	History []Event `json:"history,omitempty"`
}

// Reservation is the work that a request is expected to bring to an account, until the request ends.
type Reservation struct {
	Request   string     `json:"request"`
	Account   string     `json:"account"`
	Model     string     `json:"model,omitempty"`
	StartedAt time.Time  `json:"started_at"`
	Estimates []Estimate `json:"estimates,omitempty"`
}

// Estimate is what a request is expected to take from a window, in percent. Window is its id, Name what people call it.
type Estimate struct {
	Window  string  `json:"window"`
	Name    string  `json:"name"`
	Percent float64 `json:"percent"`
}

// ReloadResult says what a reload came to. Applied is false when Diagnostics holds an error; the last good configuration
// is then still in force.
type ReloadResult struct {
	Applied     bool               `json:"applied"`
	Generation  uint64             `json:"generation"`
	Changes     []config.Change    `json:"changes"`
	Diagnostics config.Diagnostics `json:"diagnostics"`
}

// Token is the key that clients of this user show to the proxy. It is no provider's credential.
type Token struct {
	Key string `json:"key"`
	// Runs have keys of their own, the oldest first; Ended counts those that a rotation has ended.
	Runs  []Run `json:"runs"`
	Ended int   `json:"ended,omitempty"`
}

// Run is a client that was started behind the daemon and has a key of its own.
type Run struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
	// PID of the process that asked for the key and with which it ends.
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// RotateRequest asks for another client key.
type RotateRequest struct {
	// Runs: the keys of all runs end as well.
	Runs bool `json:"runs,omitempty"`
}

// RunKeyRequest asks for a key for one run of a client.
type RunKeyRequest struct {
	Provider string `json:"provider"`
	// PID of the process that asks, as the system tells the server.
	PID int `json:"-"`
}

// RunKey is made for one run and revoked at its end, or when the process that asked for it is gone.
type RunKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
	// BaseURL of the provider at the proxy.
	BaseURL string `json:"base_url"`
}

// LaunchFlags names flags of a provider's official client whose values the adapter must see.
type LaunchFlags struct {
	Flags []string `json:"flags"`
}

// LaunchRequest asks how the official client is started behind the daemon.
type LaunchRequest struct {
	Provider string `json:"provider"`
	// Native asks for the client's own provider id, when it has such a difference.
	Native bool `json:"native,omitempty"`
	// Seen are the user's values of the flags that the adapter must see. Other arguments are never sent.
	Seen []FlagValue `json:"seen,omitempty"`
}

// FlagValue is a flag of the official client as the user gave it.
type FlagValue struct {
	Flag  string `json:"flag"`
	Value string `json:"value"`
}

// LoginPlan is the official client's command line for a login. Environment is set and Unset removed for it.
type LoginPlan struct {
	Argv        []string          `json:"argv"`
	Environment map[string]string `json:"environment"`
	Unset       []string          `json:"unset"`
}

// LaunchPlan is the official client's command line, with placeholders {{args}}, {{base_url}}, {{key}}, {{no_proxy}}.
type LaunchPlan struct {
	Argv        []string          `json:"argv"`
	Environment map[string]string `json:"environment"`
	Unset       []string          `json:"unset"`
}
