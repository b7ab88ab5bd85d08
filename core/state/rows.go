package state

import (
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// Rows are constants: copy before change. Sequence is that of the entry that wrote the row.

// accountRow is what the operator and the adapter's login decided about an account.
type accountRow struct {
	Account quota.AccountID `json:"account"`
	// SwitchedOff by the operator; what the configuration says is not kept here.
	SwitchedOff bool `json:"switched_off,omitempty"`
	// Generation is the opaque one of the login behind the last lease.
	Generation string `json:"login,omitempty"`
	Sequence   uint64 `json:"sequence,omitempty"`
}

// bindingRow is (session, model) → account.
type bindingRow struct {
	Session  string    `json:"session"`
	Model    string    `json:"model,omitempty"`
	Account  string    `json:"account"`
	BoundAt  time.Time `json:"bound_at"`
	LastUsed time.Time `json:"last_used"`
	BoundBy  BoundBy   `json:"by"`
	Cause    string    `json:"cause,omitempty"`
	// Cadence is the session's fading count of requests at LastUsed.
	Cadence float64 `json:"cadence,omitempty"`
	Moves   []Move  `json:"moves,omitempty"`
	// BoundSequence is the entry that made the binding, which a first byte waits for; 0 is this row's own.
	BoundSequence uint64 `json:"bound_sequence,omitempty"`
	Sequence      uint64 `json:"sequence,omitempty"`
}

// account names the account with its provider, which is the session's.
func (r *bindingRow) account() quota.AccountID {
	return quota.AccountID{Provider: providerOf(r.Session), Name: r.Account}
}

// boundSequence is the entry that a first byte waits for.
func (r *bindingRow) boundSequence() uint64 {
	if r.BoundSequence == 0 {
		return r.Sequence
	}
	return r.BoundSequence
}

// usedAt is the same binding, used then and not made later.
func (r *bindingRow) usedAt(at time.Time) *bindingRow {
	row := *r
	row.BoundSequence, row.LastUsed = r.boundSequence(), at
	if row.BoundAt.After(at) {
		row.BoundAt = at
	}
	return &row
}

// blockersRow is all that blocks an account.
type blockersRow struct {
	Account  quota.AccountID `json:"account"`
	Blockers []quota.Blocker `json:"blockers"`
	Sequence uint64          `json:"sequence,omitempty"`
}

// windowRow is one quota clock of an account.
type windowRow struct {
	Account  quota.AccountID `json:"account"`
	Window   quota.Window    `json:"window"`
	Sequence uint64          `json:"sequence,omitempty"`
}

// learnedRow is what an account completed; the one with the zero account holds what is learned of all sessions.
type learnedRow struct {
	Account   quota.AccountID `json:"account,omitzero"`
	Completed quota.Counts    `json:"completed,omitempty"`
	Demand    quota.Demand    `json:"demand,omitzero"`
	Sequence  uint64          `json:"sequence,omitempty"`
}

// sequenced is a row that says which entry wrote it.
type sequenced[Row any] interface {
	sequence() uint64
	withSequence(sequence uint64) Row
}

func (r *accountRow) sequence() uint64  { return r.Sequence }
func (r *bindingRow) sequence() uint64  { return r.Sequence }
func (r *blockersRow) sequence() uint64 { return r.Sequence }
func (r *learnedRow) sequence() uint64  { return r.Sequence }

// The receivers are copies.
func (r accountRow) withSequence(n uint64) *accountRow   { r.Sequence = n; return &r }
func (r bindingRow) withSequence(n uint64) *bindingRow   { r.Sequence = n; return &r }
func (r blockersRow) withSequence(n uint64) *blockersRow { r.Sequence = n; return &r }
func (r learnedRow) withSequence(n uint64) *learnedRow   { r.Sequence = n; return &r }
