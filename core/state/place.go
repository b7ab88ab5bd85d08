package state

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// attempt is one try of one request at one account, from its placement until it ends.
type attempt struct {
	id      uint64
	thread  *thread // nil without a session
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

// ErrAttemptExists says that an attempt of that number is under way.
var ErrAttemptExists = errors.New("attempt exists")

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
	var t *thread
	if req.Session != "" {
		t = s.conversation(req.Session).thread(req.Model)
	}
	d := s.decide(t, req)
	if !d.Placed {
		s.leave(t)
		s.recent.add(req, d)
		return d, nil
	}
	if err := s.reserve(t, req, d); err != nil {
		s.leave(t)
		return placement.Decision{}, err
	}
	if d.How != placement.HowBound {
		s.recent.add(req, d)
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
func (s *Store) decide(t *thread, req placement.Request) placement.Decision {
	view := placement.View{Accounts: s.providers[req.Provider], Demand: s.demand, Fit: s.fit}
	if t != nil && t.binding != nil {
		if a := s.accounts[t.binding.account()]; a != nil {
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
	if t != nil {
		if t.pending != nil {
			view.Pending = t.pending.account.Account
		}
		view.Siblings = s.siblings(t)
	}
	return placement.Decide(view, req)
}

// siblings are the accounts of the session's other models: where they live, the most recently accepted first, and then
// where they are being placed.
func (s *Store) siblings(t *thread) []*quota.Account {
	var accounts []*quota.Account
	others := slices.DeleteFunc(slices.Clone(t.conversation.threads), func(other *thread) bool { return other == t })
	slices.SortStableFunc(others, func(a, b *thread) int { return b.lastUsed().Compare(a.lastUsed()) })
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
func (s *Store) reserve(t *thread, req placement.Request, d placement.Decision) error {
	a := s.accounts[d.Account]
	q := &attempt{
		id: req.Attempt, thread: t, account: a, model: req.Model, began: req.At,
		cautious: d.How == placement.HowCautious, sibling: d.How == placement.HowSibling,
	}
	if t != nil {
		q.binds = req.Binds && !s.detours(t, req, d)
		if t.binding != nil {
			q.seen = t.binding.boundSequence()
			q.cause = s.leaving(t, req)
		}
	}
	if d.How != placement.HowBound {
		if err := s.insertReservation(q, req, d); err != nil {
			return err
		}
	}
	s.attempts[q.id] = q
	a.Begin(q.model)
	if q.cautious {
		a.Unconfirmed++
	}
	if t == nil {
		if d.How != placement.HowFollow {
			a.PlacedAt = req.At
		}
		return nil
	}
	t.inFlight++
	switch d.How {
	case placement.HowBound:
		t.cadence = t.cadence.Plus(1, req.At)
		a.Cadence.Add(t.id.model, 1, req.At)
		s.touch(t)
	case placement.HowFollow:
	default:
		s.placing(q, req)
	}
	return nil
}

// placing makes a new placement count at once, before it is accepted: a burst of sessions sees itself.
func (s *Store) placing(q *attempt, req placement.Request) {
	a, t := q.account, q.thread
	a.PlacedAt = req.At
	if !req.Binds {
		return
	}
	t.pending = q
	if !q.binds {
		return
	}
	q.placing = true
	a.LiveSessions++
	if !q.sibling || t.binding != nil {
		q.cadence = s.sessionCadence(t, req.At)
	}
	a.Cadence.Add(t.id.model, q.cadence, req.At)
}

// detours reports whether a request of a bound session goes elsewhere for this once: nothing but a pause or trouble on
// the way keeps it from its account, and that moves no binding.
func (s *Store) detours(t *thread, req placement.Request, d placement.Decision) bool {
	if d.Bound {
		return false
	}
	if req.Detour || t.binding == nil {
		return req.Detour
	}
	a := s.accounts[t.binding.account()]
	return a != nil && a.Serves(req.Model) && !a.Blocked(req.Model, false, req.At)
}

// leaving says why a bound session cannot stay, empty if it can.
func (s *Store) leaving(t *thread, req placement.Request) string {
	a := s.accounts[t.binding.account()]
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

func (s *Store) insertReservation(q *attempt, req placement.Request, d placement.Decision) error {
	row := &reservationRow{
		Attempt: q.id, RequestID: req.RequestID, Session: req.Session, Model: req.Model,
		Account: d.Account, StartedAt: req.At, Estimates: estimates(d),
	}
	txn := s.db.Txn(true)
	defer txn.Abort()
	if err := txn.Insert(tableReservations, row); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	txn.Commit()
	q.reserved = true
	s.reservations++
	return nil
}

func estimates(d placement.Decision) []Estimate {
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.Account != d.Account {
			continue
		}
		list := make([]Estimate, 0, len(c.Terms))
		for _, t := range c.Terms {
			list = append(list, Estimate{Window: t.Window, Percent: t.Kappa})
		}
		return list
	}
	return nil
}

// leave lets a session go that was looked at and not placed.
func (s *Store) leave(t *thread) {
	if t != nil {
		s.release(t.conversation)
	}
}
