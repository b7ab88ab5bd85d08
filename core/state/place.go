package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// Place selects an account for one attempt and reserves it, under one lock and in one write transaction. A decision that
// placed nothing carries the forecast and reserves nothing.
func (s *Store) Place(req placement.Request) (placement.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return placement.Decision{}, ErrClosed
	}
	if s.attempts[req.Attempt] != nil {
		return placement.Decision{}, fmt.Errorf("place attempt %d: %w", req.Attempt, ErrAttemptExists)
	}
	req = s.bounded(req)
	s.sweep(req.At)
	var m *liveModel
	if req.Session != "" {
		m = s.liveSession(req.Session).model(req.Model)
	}
	d := s.decide(m, req)
	if !d.Placed {
		s.leave(m)
		s.decisions.add(req, d)
		return d, nil
	}
	if err := s.reserve(m, req, d); err != nil {
		s.leave(m)
		return placement.Decision{}, err
	}
	if d.How != placement.HowBound {
		s.decisions.add(req, d)
	}
	return d, nil
}

// bounded brings a request into the form in which it may become rows.
func (s *Store) bounded(req placement.Request) placement.Request {
	req.At = s.moment(req.At)
	req.Session = boundedSession(req.Provider, req.Session)
	req.Model = boundedModel(req.Model)
	return req
}

// decide looks at what it must: a bound session costs no look at other accounts.
func (s *Store) decide(m *liveModel, req placement.Request) placement.Decision {
	view := placement.View{Accounts: s.providers[req.Provider], Demand: s.demand, Fit: s.fit}
	if m != nil && m.binding != nil {
		if a := s.accounts[m.binding.account()]; a != nil {
			s.settle(a, req.At)
			view.Bound = a.Account
		}
	}
	if d, ok := view.Keep(req); ok {
		return d
	}
	for _, a := range view.Accounts {
		s.settle(s.accounts[a.ID], req.At)
	}
	if m != nil {
		if m.pending != nil {
			view.Pending = m.pending.account.Account
		}
		view.Siblings = s.siblings(m)
	}
	return placement.Decide(view, req)
}

// siblings are the accounts of the session's other models: where they live, the most recently accepted first, and then
// where they are being placed.
func (s *Store) siblings(m *liveModel) []*quota.Account {
	var accounts []*quota.Account
	others := slices.DeleteFunc(slices.Clone(m.session.models), func(other *liveModel) bool { return other == m })
	slices.SortStableFunc(others, func(a, b *liveModel) int { return b.lastUsed().Compare(a.lastUsed()) })
	for _, other := range others {
		if other.binding == nil {
			continue
		}
		if a := s.accounts[other.binding.account()]; a != nil {
			accounts = append(accounts, a.Account)
		}
	}
	for _, other := range others {
		if other.pending != nil {
			accounts = append(accounts, other.pending.account.Account)
		}
	}
	return accounts
}

// settle lets time pass for one account.
func (s *Store) settle(a *account, now time.Time) {
	if a.Settle(now) {
		a.writing.dirty = true
		s.notify()
	}
}

// reserve makes the attempt: its reservation, and what a placement changes before anything is accepted.
func (s *Store) reserve(m *liveModel, req placement.Request, d placement.Decision) error {
	a := s.accounts[d.Account]
	attempt := &attempt{
		id: req.Attempt, live: m, account: a, model: req.Model, began: req.At,
		cautious: d.How == placement.HowCautious, sibling: d.How == placement.HowSibling,
	}
	if m != nil {
		attempt.binds = req.Binds && !s.detours(m, req, d)
		if m.binding != nil {
			attempt.seen = m.binding.boundSequence()
			attempt.cause = s.leaving(m, req)
		}
	}
	if d.How != placement.HowBound {
		if err := s.insertReservation(attempt, req, d); err != nil {
			return err
		}
	}
	s.attempts[attempt.id] = attempt
	a.Begin(attempt.model)
	if attempt.cautious {
		a.Unconfirmed++
	}
	if m == nil {
		if d.How != placement.HowFollow {
			a.PlacedAt = req.At
		}
		return nil
	}
	m.inFlight++
	switch d.How {
	case placement.HowBound:
		m.cadence = m.cadence.Plus(1, req.At)
		a.Cadence.Add(m.id.model, 1, req.At)
		s.touch(m)
	case placement.HowFollow:
	default:
		s.placing(attempt, req)
	}
	return nil
}

// placing makes a new placement count at once, before it is accepted: a burst of sessions sees itself.
func (s *Store) placing(attempt *attempt, req placement.Request) {
	a, m := attempt.account, attempt.live
	a.PlacedAt = req.At
	if !req.Binds {
		return
	}
	m.pending = attempt
	if !attempt.binds {
		return
	}
	attempt.placing = true
	a.LiveSessions++
	if !attempt.sibling || m.binding != nil {
		attempt.cadence = s.sessionCadence(m, req.At)
	}
	a.Cadence.Add(m.id.model, attempt.cadence, req.At)
}

// detours reports whether a request of a bound session goes elsewhere for this once: nothing but a pause or trouble on
// the way keeps it from its account, and that moves no binding.
func (s *Store) detours(m *liveModel, req placement.Request, d placement.Decision) bool {
	if d.Bound {
		return false
	}
	if req.Detour || m.binding == nil {
		return req.Detour
	}
	a := s.accounts[m.binding.account()]
	return a != nil && a.Serves(req.Model) && !a.Blocked(req.Model, false, req.At)
}

// leaving says why a bound session cannot stay, empty if it can.
func (s *Store) leaving(m *liveModel, req placement.Request) string {
	a := s.accounts[m.binding.account()]
	switch {
	case a == nil || !a.configured:
		return "removed"
	case !a.Enabled:
		return placement.FilteredDisabled
	case !a.Serves(req.Model):
		return placement.FilteredModel
	}
	if blockers := a.Blocking(req.Model, false, req.At); len(blockers) > 0 {
		return string(blockers[0].Cause)
	}
	return ""
}

// leave lets a session go that was looked at and not placed.
func (s *Store) leave(m *liveModel) {
	if m != nil {
		s.release(m.session)
	}
}
