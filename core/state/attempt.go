package state

import (
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// attempt is one try of one request at one account, from its placement until it ends.
type attempt struct {
	id      uint64
	live    *liveModel // nil without a session
	account *account
	model   string
	began   time.Time
	// seen is the entry of the binding that there was, 0 for none: acceptance binds only if it is still the one.
	seen uint64
	// binds: acceptance may make or move the binding.
	binds bool
	// placing: a new placement that is not accepted yet; cadence is what it added to the account for its session.
	placing bool
	cadence float64
	// sibling: beside the session's other model, it adds no cadence of a new session.
	sibling bool
	// cautious: an unconfirmed attempt on an account that is not known to have room.
	cautious bool
	accepted bool
	// reserved: the store holds a row for it.
	reserved bool
	// cause why the session left its account, if it does.
	cause string
}

// Accept records that the upstream accepted the attempt's work, and tells what that did. It binds, if the binding is still
// the one that was seen when the attempt was placed, and starts predicted clocks.
func (s *Store) Accept(id uint64, at time.Time) (done placement.Acceptance, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := s.attempts[id]
	if attempt == nil {
		return done, nil
	}
	now := s.moment(at)
	before := attempt.live.home()
	if !attempt.accepted {
		err = s.accept(attempt, now)
	}
	if done.Home = attempt.live.home(); done.Home != attempt.account.ID {
		return done, err
	}
	done.Sequence = attempt.live.binding.boundSequence()
	if before != done.Home {
		done.Bound, done.From = true, before
	}
	return done, err
}

func (s *Store) accept(attempt *attempt, now time.Time) (err error) {
	attempt.accepted = true
	s.sweep(now)
	attempt.account.Reached(attempt.began)
	s.confirm(attempt)
	if m := attempt.live; m != nil && attempt.binds && m.unchangedFor(attempt) {
		if !m.active && m.binding != nil && m.binding.account() == attempt.account.ID {
			attempt.account.LiveSessions++ // resumed after a pause
		}
		if err = s.bind(attempt, now); err == nil {
			s.accepted(m, now)
		}
	} else {
		s.undo(attempt, now)
	}
	if attempt.account.Accepted(attempt.model, now) {
		s.notify()
	}
	attempt.account.writing.dirty = true
	return err
}

// unchangedFor reports whether the attempt may bind: the binding is the one that it saw, or leads to its account already.
func (m *liveModel) unchangedFor(attempt *attempt) bool {
	if m.binding == nil {
		return attempt.seen == 0
	}
	return m.binding.boundSequence() == attempt.seen || m.binding.account() == attempt.account.ID
}

// confirm ends a cautious attempt's doubt.
func (s *Store) confirm(attempt *attempt) {
	if attempt.cautious {
		attempt.cautious = false
		attempt.account.Unconfirmed--
	}
}

// undo takes back what a placement counted before acceptance.
func (s *Store) undo(attempt *attempt, now time.Time) {
	if m := attempt.live; m != nil && m.pending == attempt {
		m.pending = nil
	}
	if attempt.placing {
		attempt.placing = false
		attempt.account.LiveSessions--
		attempt.account.Cadence.Add(attempt.live.id.model, -attempt.cadence, now)
	}
}

// End ends an attempt, however it ended. Work that was accepted counts as completed; the rest is as if it had never been
// placed.
func (s *Store) End(id uint64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := s.attempts[id]
	if attempt == nil {
		return
	}
	now := s.moment(at)
	s.undo(attempt, now)
	if attempt.accepted {
		attempt.account.Complete(attempt.model, now)
		attempt.account.writing.dirty = true
	} else {
		attempt.account.Release(attempt.model)
	}
	s.forget(attempt)
}

// forget drops the attempt and its reservation.
func (s *Store) forget(attempt *attempt) {
	s.confirm(attempt)
	delete(s.attempts, attempt.id)
	s.dropReservation(attempt)
	if attempt.live != nil {
		attempt.live.inFlight--
		s.release(attempt.live.session)
	}
}

// Reject ends an attempt that was refused: a blocker, or a cooldown for throttling, network trouble and a credential that
// did not come. The sequence must be durable before a failover is attempted on account of it. After acceptance it records
// the blocker, and the attempt goes on until End.
func (s *Store) Reject(id uint64, rejection quota.Rejection, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := s.attempts[id]
	if attempt == nil {
		return 0, nil
	}
	now := s.moment(at)
	if !attempt.accepted {
		s.undo(attempt, now)
		attempt.account.Release(attempt.model)
		s.forget(attempt)
	}
	a := attempt.account
	rejection, ok := boundedRejection(rejection, attempt.began, now)
	if !ok {
		return 0, nil
	}
	if a.Reject(rejection, attempt.model, attempt.began, now) {
		sequence, err = s.commit(&blockersRow{Account: a.ID, Blockers: a.Blockers})
	}
	a.writing.dirty = true
	s.notify()
	return sequence, err
}
