package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// Observe takes the windows that one source reported in one read. sentAt is when it was asked for; received is now.
func (s *Store) Observe(id quota.AccountID, readings []quota.Reading, sentAt, received time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return fmt.Errorf("observe %s: %w", id, ErrUnknownAccount)
	}
	if s.closed {
		return ErrClosed
	}
	now := s.moment(received)
	changed, blockers := a.Observe(boundedReadings(readings, sentAt.UTC(), now), now)
	if changed {
		a.writing.dirty = true
		s.notify()
	}
	if !blockers {
		return nil
	}
	_, err := s.commit(&blockersRow{Account: id, Blockers: a.Blockers})
	return err
}

// ForgetQuota drops what was read of an account's quota, at the boundary of a new login; see quota.Account.
func (s *Store) ForgetQuota(id quota.AccountID, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return fmt.Errorf("forget quota of %s: %w", id, ErrUnknownAccount)
	}
	s.moment(at)
	a.ForgetObservations()
	a.writing.dirty = true
	s.notify()
	return nil
}

// CredentialCame notes that the credential of an account that was paused for the want of it is here.
func (s *Store) CredentialCame(id quota.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[id]; a != nil {
		a.CredentialCame()
		s.notify()
	}
}

// boundedReadings drops readings that may not become rows, and gives the others times that are not in the future.
func boundedReadings(readings []quota.Reading, sentAt, now time.Time) []quota.Reading {
	kept := make([]quota.Reading, 0, len(readings))
	for _, r := range readings {
		if checkDeclaration(r.Declaration) != nil || checkFinite("percent", r.UsedPercent) != nil || checkText("source", string(r.Source), maxCode) != nil {
			continue
		}
		switch r.State {
		case quota.Observed, quota.Exhausted, quota.AwaitingFirstUse, quota.Pending, quota.NotExposed, quota.Unknown:
		default:
			continue
		}
		r.UsedPercent = min(max(r.UsedPercent, 0), 100)
		if checkTime("resets at", r.ResetsAt) != nil {
			r.ResetsAt = time.Time{}
		}
		r.ResetsAt, r.ObservedAt = r.ResetsAt.UTC(), r.ObservedAt.UTC()
		if r.ObservedAt.IsZero() || checkTime("observed at", r.ObservedAt) != nil {
			r.ObservedAt = sentAt
		}
		if r.ObservedAt.After(now) || r.ObservedAt.IsZero() {
			r.ObservedAt = now
		}
		kept = append(kept, r)
	}
	return kept
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
