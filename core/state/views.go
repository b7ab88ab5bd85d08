package state

import (
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// AccountView is one account as people see it.
type AccountView struct {
	ID quota.AccountID `json:"id"`
	// Enabled is what counts: Configured as enabled, and not SwitchedOff by the operator.
	Enabled     bool `json:"enabled"`
	Configured  bool `json:"configured"`
	SwitchedOff bool `json:"switched_off"`
	// SignedOut: the upstream refused its login, and no sign-in was seen since.
	SignedOut    bool     `json:"signed_out"`
	Unmetered    bool     `json:"unmetered"`
	AllowOverage bool     `json:"allow_overage"`
	Models       []string `json:"models,omitempty"`
	// Usable: enabled, and nothing blocks the whole account for sessions that live there.
	Usable  bool               `json:"usable"`
	Windows []quota.WindowView `json:"windows"`
	// Blockers include those of single models, and windows that telemetry shows full.
	Blockers     []quota.Blocker    `json:"blockers"`
	Cooldowns    []quota.Cooldown   `json:"cooldowns,omitempty"`
	InFlight     int                `json:"in_flight"`
	LiveSessions int                `json:"live_sessions"`
	Bindings     int                `json:"bindings"`
	Completed    []quota.ModelCount `json:"completed,omitempty"`
	PlacedAt     time.Time          `json:"placed_at,omitzero"`
}

// SessionView is one session with its bindings.
type SessionView struct {
	// Key is provider/identity; Hash is what logs show.
	Key      string        `json:"key"`
	Hash     string        `json:"hash"`
	Provider string        `json:"provider"`
	Bindings []BindingView `json:"bindings"`
	LastUsed time.Time     `json:"last_used"`
	InFlight int           `json:"in_flight"`
	// Live: a request was accepted in the last half hour.
	Live bool `json:"live"`
}

// BindingView is where one model of a session lives, and where it lived before.
type BindingView struct {
	Model    string          `json:"model"`
	Account  quota.AccountID `json:"account"`
	BoundAt  time.Time       `json:"bound_at"`
	LastUsed time.Time       `json:"last_used"`
	BoundBy  BoundBy         `json:"bound_by"`
	// Cause of the last move.
	Cause string `json:"cause,omitempty"`
	// Moves, oldest first; bounded.
	Moves []Move `json:"moves,omitempty"`
}

// BoundBy says who made a binding.
type BoundBy string

// Makers of bindings.
const (
	BoundInitially  BoundBy = "initial"
	BoundByFailover BoundBy = "failover"
	BoundByOperator BoundBy = "operator"
)

// Move is one change of a binding's account.
type Move struct {
	From  string    `json:"from"`
	To    string    `json:"to"`
	At    time.Time `json:"at"`
	By    BoundBy   `json:"by"`
	Cause string    `json:"cause,omitempty"`
}

// Explanation is why a session is where it is, and what would happen to its next request.
type Explanation struct {
	// Session is nil for one that would be new.
	Session *SessionView `json:"session,omitempty"`
	Model   string       `json:"model,omitempty"`
	// Last is the newest decision that chose an account for it in this life of the process.
	Last *placement.Decision `json:"last,omitempty"`
	// Now is what the next request would get. Its candidates are listed even when the session stays.
	Now placement.Decision `json:"now"`
}

// Stats are counts for metrics and doctor.
type Stats struct {
	Bindings      int `json:"bindings"`
	Conversations int `json:"conversations"`
	LiveSessions  int `json:"live_sessions"`
	Blockers      int `json:"blockers"`
	InFlight      int `json:"in_flight"`
	Reservations  int `json:"reservations"`
	// Entries appended by this process; Sequence of the last, Durable of the last on disk.
	Entries  uint64 `json:"entries"`
	Sequence uint64 `json:"sequence"`
	Durable  uint64 `json:"durable"`
	// ClockHeld: the wall clock says something implausible, and the last good time is used.
	ClockHeld bool `json:"clock_held"`
}
