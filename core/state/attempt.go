package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// Accept records that the upstream accepted the attempt's work. It binds, if the binding is still the one that was seen
// when the attempt was placed, and starts predicted clocks. The sequence must be durable before the first byte goes to
// the client; 0 waits for nothing.
func (s *Store) Accept(id uint64, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.attempts[id]
	if q == nil {
		return 0, nil
	}
	now := s.moment(at)
	if !q.accepted {
		err = s.accept(q, now)
	}
	if q.thread == nil || q.thread.binding == nil || q.thread.binding.account() != q.account.ID {
		return 0, err
	}
	return q.thread.binding.boundSequence(), err
}

func (s *Store) accept(q *attempt, now time.Time) (err error) {
	q.accepted = true
	s.sweep(now)
	q.account.Reached(q.began)
	s.confirm(q)
	if t := q.thread; t != nil && q.binds && t.unchangedFor(q) {
		if !t.active && t.binding != nil && t.binding.account() == q.account.ID {
			q.account.LiveSessions++ // resumed after a pause
		}
		if err = s.bind(q, now); err == nil {
			s.accepted(t, now)
		}
	} else {
		s.undo(q, now)
	}
	if q.account.Accepted(q.model, now) {
		s.notify()
	}
	q.account.writing.dirty = true
	return err
}

// unchangedFor reports whether the attempt may bind: the binding is the one that it saw, or leads to its account already.
func (t *thread) unchangedFor(q *attempt) bool {
	if t.binding == nil {
		return q.seen == 0
	}
	return t.binding.boundSequence() == q.seen || t.binding.account() == q.account.ID
}

// confirm ends a cautious attempt's doubt.
func (s *Store) confirm(q *attempt) {
	if q.cautious {
		q.cautious = false
		q.account.Unconfirmed--
	}
}

// undo takes back what a placement counted before acceptance.
func (s *Store) undo(q *attempt, now time.Time) {
	if t := q.thread; t != nil && t.pending == q {
		t.pending = nil
	}
	if q.placing {
		q.placing = false
		q.account.LiveSessions--
		q.account.Cadence.Add(q.thread.id.model, -q.cadence, now)
	}
}

// bind makes the attempt's account the thread's.
func (s *Store) bind(q *attempt, now time.Time) error {
	t := q.thread
	if t.binding != nil && t.binding.account() == q.account.ID {
		s.undo(q, now) // another request of the session was accepted here first
		t.touchAt(now)
		s.touch(t)
		return nil
	}
	brought := s.sessionCadence(t, now)
	if t.binding == nil && q.sibling {
		brought = 0
	}
	row := &bindingRow{
		Session: t.id.session, Model: t.id.model, Account: q.account.ID.Name,
		BoundAt: now, LastUsed: now, BoundBy: BoundInitially, Cadence: brought + 1,
	}
	if t.binding != nil {
		row.BoundBy, row.Cause = BoundByFailover, q.cause
		row.Moves = t.binding.moved(row)
	}
	old := t.binding
	_, err := s.commit(row)
	if err == nil {
		err = s.takeUp(t)
	}
	if err != nil {
		s.undo(q, now)
		return fmt.Errorf("bind session: %w", err)
	}
	if old != nil {
		s.unsettle(old, t.active, s.accounts[old.account()], brought, now)
	}
	if !q.placing { // it followed a placement: the session's cadence comes with it
		q.account.LiveSessions++
		q.account.Cadence.Add(t.id.model, brought, now)
	}
	q.placing = false
	if t.pending != nil && t.pending.account == q.account {
		t.pending = nil
	}
	q.account.bindings++
	q.account.Cadence.Add(t.id.model, 1, now)
	t.writing.at = now
	s.notify()
	return nil
}

// unsettle takes a thread's part out of the account that it leaves.
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

// takeUp takes up the thread's row that was just written.
func (s *Store) takeUp(t *thread) error {
	row, err := first[*bindingRow](s.db.Txn(false), tableBindings, t.id)
	if err != nil {
		return err
	}
	s.held = s.held.plus(row.space())
	if t.binding != nil {
		s.held = s.held.minus(t.binding.space())
	}
	t.bind(row)
	return nil
}

func (t *thread) touchAt(now time.Time) { t.cadence = t.cadence.Plus(0, now) }

// moved is the history of a binding that is replaced, bounded.
func (r *bindingRow) moved(to *bindingRow) []Move {
	moves := append([]Move(nil), r.Moves...)
	moves = append(moves, Move{From: r.Account, To: to.Account, At: to.BoundAt, By: to.BoundBy, Cause: to.Cause})
	if len(moves) > maxMoves {
		moves = moves[len(moves)-maxMoves:]
	}
	return moves
}

// End ends an attempt, however it ended. Work that was accepted counts as completed; the rest is as if it had never been
// placed.
func (s *Store) End(id uint64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.attempts[id]
	if q == nil {
		return
	}
	now := s.moment(at)
	s.undo(q, now)
	if q.accepted {
		q.account.Complete(q.model, now)
		q.account.writing.dirty = true
	} else {
		q.account.Release(q.model)
	}
	s.forget(q)
}

// forget drops the attempt and its reservation.
func (s *Store) forget(q *attempt) {
	s.confirm(q)
	delete(s.attempts, q.id)
	if q.reserved {
		s.reservations--
		txn := s.db.Txn(true)
		defer txn.Abort()
		if err := txn.Delete(tableReservations, &reservationRow{Attempt: q.id}); err == nil {
			txn.Commit()
		}
	}
	if q.thread != nil {
		q.thread.inFlight--
		s.release(q.thread.conversation)
	}
}

// Reject ends an attempt that was refused: a blocker, or a cooldown for throttling, network trouble and a credential that
// did not come. The sequence must be durable before a failover is attempted on account of it. After acceptance it records
// the blocker, and the attempt goes on until End.
func (s *Store) Reject(id uint64, rejection quota.Rejection, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.attempts[id]
	if q == nil {
		return 0, nil
	}
	now := s.moment(at)
	if !q.accepted {
		s.undo(q, now)
		q.account.Release(q.model)
		s.forget(q)
	}
	a := q.account
	rejection, ok := boundedRejection(rejection, q.began, now)
	if !ok {
		return 0, nil
	}
	if a.Reject(rejection, q.model, q.began, now) {
		sequence, err = s.commit(&blockersRow{Account: a.ID, Blockers: a.Blockers})
	}
	a.writing.dirty = true
	s.notify()
	return sequence, err
}

// boundedRejection checks what an adapter said; ok is false for a cause that blocks nothing.
func boundedRejection(r quota.Rejection, began, now time.Time) (rejection quota.Rejection, ok bool) {
	switch r.Cause {
	case quota.CauseQuota, quota.CauseAuth, quota.CauseNotEntitled, quota.CauseThrottle, quota.CauseNetwork, quota.CauseCredential:
	default:
		return r, false
	}
	if checkTime("clears at", r.ClearsAt) != nil {
		r.ClearsAt = time.Time{}
	}
	if checkText("window", r.WindowID, maxName) != nil {
		r.WindowID = ""
	}
	if checkText("reason", r.Reason, maxCode) != nil {
		r.Reason = ""
	}
	r.Model = boundedModel(r.Model)
	r.ClearsAt = r.ClearsAt.UTC()
	r.Windows = boundedReadings(r.Windows, began, now)
	return r, true
}

// SessionAccount is the account of the session's most recently accepted binding.
func (s *Store) SessionAccount(session string) (quota.AccountID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session = boundedSession(providerOf(session), session)
	if session == "" {
		return quota.AccountID{}, false
	}
	c := s.conversation(session)
	defer s.release(c)
	var newest *thread
	for _, t := range c.threads {
		if t.binding != nil && (newest == nil || t.lastUsed().After(newest.lastUsed())) {
			newest = t
		}
	}
	if newest == nil {
		return quota.AccountID{}, false
	}
	return newest.binding.account(), true
}
