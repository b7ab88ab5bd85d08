package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// AccountView is one account as people see it.
type AccountView struct {
	ID quota.AccountID `json:"id"`
	// Enabled is what counts: EnabledInConfig, and not SwitchedOff by the operator.
	Enabled         bool `json:"enabled"`
	EnabledInConfig bool `json:"enabled_in_config"`
	SwitchedOff     bool `json:"switched_off"`
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

// Accounts are all configured accounts as people see them, in configuration order.
func (s *Store) Accounts(at time.Time) []AccountView {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment(at)
	views := make([]AccountView, 0, len(s.configured))
	for _, a := range s.configured {
		views = append(views, s.view(a, now))
	}
	return views
}

// AccountByID is one account as people see it.
func (s *Store) AccountByID(id quota.AccountID, at time.Time) (AccountView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil || !a.configured {
		return AccountView{}, fmt.Errorf("read %s: %w", id, ErrUnknownAccount)
	}
	return s.view(a, s.moment(at)), nil
}

// Enabled reports whether the account is configured, enabled, and not switched off.
func (s *Store) Enabled(id quota.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	return a != nil && a.Enabled
}

func (s *Store) view(a *account, now time.Time) AccountView {
	s.settle(a, now)
	v := AccountView{
		ID: a.ID, Enabled: a.Enabled, EnabledInConfig: a.config.Enabled, SwitchedOff: a.switchedOff,
		SignedOut: a.SignedOut(), Unmetered: a.Unmetered, AllowOverage: a.AllowOverage, Models: a.Models,
		Windows: a.Views(now), Blockers: a.AllBlockers(now), Cooldowns: a.Cooldowns(now),
		InFlight: int(a.InFlight.Total()), LiveSessions: a.LiveSessions, Bindings: a.bindings,
		Completed: a.Completed.Clone(), PlacedAt: a.PlacedAt,
	}
	v.Usable = a.Enabled && !a.Blocked("", false, now)
	return v
}
