package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// bind makes the attempt's account the one where the model lives.
func (s *Store) bind(attempt *attempt, now time.Time) error {
	m := attempt.live
	if m.binding != nil && m.binding.account() == attempt.account.ID {
		s.undo(attempt, now) // another request of the session was accepted here first
		m.touchAt(now)
		s.touch(m)
		return nil
	}
	brought := s.sessionCadence(m, now)
	if m.binding == nil && attempt.sibling {
		brought = 0
	}
	row := &bindingRow{
		Session: m.id.session, Model: m.id.model, Account: attempt.account.ID.Name,
		BoundAt: now, LastUsed: now, BoundBy: BoundInitially, Cadence: brought + 1,
	}
	if m.binding != nil {
		row.BoundBy, row.Cause = BoundByFailover, attempt.cause
		row.Moves = m.binding.moved(row)
	}
	old := m.binding
	_, err := s.commit(row)
	if err == nil {
		err = s.takeUp(m)
	}
	if err != nil {
		s.undo(attempt, now)
		return fmt.Errorf("bind session: %w", err)
	}
	if old != nil {
		s.unsettle(old, m.active, s.accounts[old.account()], brought, now)
	}
	if !attempt.placing { // it followed a placement: the session's cadence comes with it
		attempt.account.LiveSessions++
		attempt.account.Cadence.Add(m.id.model, brought, now)
	}
	attempt.placing = false
	if m.pending != nil && m.pending.account == attempt.account {
		m.pending = nil
	}
	attempt.account.bindings++
	attempt.account.Cadence.Add(m.id.model, 1, now)
	m.writing.at = now
	s.notify()
	return nil
}

// unsettle takes a binding's part out of the account that it leaves.
func (s *Store) unsettle(old *bindingRow, active bool, a *account, cadence float64, now time.Time) {
	if a == nil {
		return
	}
	a.bindings--
	if active {
		a.LiveSessions--
	}
	a.Cadence.Add(old.Model, -cadence, now)
}

// takeUp takes up the model's row that was just written.
func (s *Store) takeUp(m *liveModel) error {
	row, err := first[*bindingRow](s.db.Txn(false), tableBindings, m.id)
	if err != nil {
		return err
	}
	s.used = s.used.plus(row.space())
	if m.binding != nil {
		s.used = s.used.minus(m.binding.space())
	}
	m.bind(row)
	return nil
}

// moved is the history of a binding that is replaced, bounded.
func (r *bindingRow) moved(to *bindingRow) []Move {
	moves := append([]Move(nil), r.Moves...)
	moves = append(moves, Move{From: r.Account, To: to.Account, At: to.BoundAt, By: to.BoundBy, Cause: to.Cause})
	if len(moves) > maxMoves {
		moves = moves[len(moves)-maxMoves:]
	}
	return moves
}

// movedTo is the model's row after an operator's move.
func (m *liveModel) movedTo(to quota.AccountID, now time.Time) *bindingRow {
	row := &bindingRow{
		Session: m.id.session, Model: m.id.model, Account: to.Name,
		BoundAt: now, LastUsed: m.lastUsed(), BoundBy: BoundByOperator, Cause: "operator", Cadence: m.cadence.Count,
	}
	row.Moves = m.binding.moved(row)
	return row
}

// settleIn counts a model that was moved into its new account.
func (s *Store) settleIn(m *liveModel, to quota.AccountID, now time.Time) error {
	cadence, old := m.cadence.Value(now), m.binding
	if err := s.takeUp(m); err != nil {
		return err
	}
	s.unsettle(old, m.active, s.accounts[old.account()], cadence, now)
	a := s.accounts[to]
	a.bindings++
	if m.active {
		a.LiveSessions++
	}
	a.Cadence.Add(m.id.model, cadence, now)
	return nil
}

// unbind drops bindings, with what they counted.
func (s *Store) unbind(ids []bindingID, cause string, now time.Time) (sequence uint64, err error) {
	entries := make([]entry, 0, len(ids))
	rows := make([]*bindingRow, 0, len(ids))
	for _, id := range ids {
		row, err := first[*bindingRow](s.db.Txn(false), tableBindings, id)
		if err != nil {
			return 0, err
		}
		if row != nil {
			rows = append(rows, row)
			entries = append(entries, &unbind{Session: id.session, Model: id.model, Cause: cause})
		}
	}
	if len(entries) == 0 {
		return 0, nil
	}
	if sequence, err = s.commit(entries...); err != nil {
		return 0, fmt.Errorf("unbind: %w", err)
	}
	for _, row := range rows {
		s.used = s.used.minus(row.space())
		var active bool
		var cadence float64
		if live := s.live[row.Session]; live != nil {
			m := live.model(row.Model)
			active, cadence = m.active, m.cadence.Value(now)
			m.binding, m.active, m.cadence = nil, false, quota.Faded{}
		}
		s.unsettle(row, active, s.accounts[row.account()], cadence, now)
	}
	s.notify()
	return sequence, nil
}
