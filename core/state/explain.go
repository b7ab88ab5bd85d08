package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

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

// Enabled reports whether the account is configured, enabled, and not switched off.
func (s *Store) Enabled(id quota.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	return a != nil && a.Enabled
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

func (s *Store) view(a *account, now time.Time) AccountView {
	s.settle(a, now)
	v := AccountView{
		ID: a.ID, Enabled: a.Enabled, Configured: a.config.Enabled, SwitchedOff: a.switchedOff,
		SignedOut: a.SignedOut(), Unmetered: a.Unmetered, AllowOverage: a.AllowOverage, Models: a.Models,
		Windows: a.Views(now), Blockers: a.AllBlockers(now), Cooldowns: a.Cooldowns(now),
		InFlight: int(a.InFlight.Total()), LiveSessions: a.LiveSessions, Bindings: a.bindings,
		Completed: a.Completed.Clone(), PlacedAt: a.PlacedAt,
	}
	v.Usable = a.Enabled && !a.Blocked("", false, now)
	return v
}

// Explain says where the session lives and why, and what its next request for the model would get. Nothing is reserved.
func (s *Store) Explain(key, model string, at time.Time) (Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view, ok := s.session(key)
	if !ok {
		return Explanation{}, fmt.Errorf("explain session: %w", ErrUnknownSession)
	}
	if model == "" {
		model = newestModel(view)
	}
	e := Explanation{Session: &view, Model: model, Last: s.recent.find(key, model)}
	e.Now = s.whatIf(placement.Request{Session: key, Provider: view.Provider, Model: model, Binds: true, At: at})
	return e, nil
}

func newestModel(v SessionView) string {
	model, newest := "", time.Time{}
	for _, b := range v.Bindings {
		if model == "" || b.LastUsed.After(newest) {
			model, newest = b.Model, b.LastUsed
		}
	}
	return model
}

// ExplainNew says what the first request of a new session would get. Nothing is reserved.
func (s *Store) ExplainNew(provider, model string, at time.Time) Explanation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Explanation{Model: model, Now: s.whatIf(placement.Request{Provider: provider, Model: model, Binds: true, At: at})}
}

// whatIf decides without reserving. It also lists the candidates of a session that stays where it is.
func (s *Store) whatIf(req placement.Request) placement.Decision {
	req = s.bounded(req)
	if req.Session == "" {
		return s.decide(nil, req)
	}
	c := s.conversation(req.Session)
	defer s.release(c)
	d := s.decide(c.thread(req.Model), req)
	if d.Candidates == nil {
		d.Candidates = s.decide(nil, req).Candidates
	}
	return d
}

// RequestDecision is the newest decision remembered of a client request.
func (s *Store) RequestDecision(requestID string) (placement.Decision, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.ofRequest(requestID)
}

// Stats are counts for metrics and doctor.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Bindings: s.held.bindings, Conversations: len(s.conversations), InFlight: len(s.attempts), Reservations: s.reservations,
		Entries: s.entries, Sequence: s.sequence, Durable: s.log.DurableSequence(), ClockHeld: s.clock.held,
	}
	for _, a := range s.accounts {
		stats.Blockers += len(a.Blockers)
		stats.LiveSessions += a.LiveSessions
	}
	return stats
}

// Bounds of what is remembered for explanations: so many decisions, with so many candidates in all.
const (
	rememberedDecisions  = 256
	rememberedCandidates = 8192
)

// decisions remembers the newest ones that chose or refused. It does not outlive the process.
type decisions struct {
	ring       [rememberedDecisions]remembered
	next, held int
	candidates int
}

type remembered struct {
	request, session, model string
	decision                placement.Decision
}

func (d *decisions) add(req placement.Request, decision placement.Decision) {
	d.candidates += len(decision.Candidates)
	for d.held > 0 && (d.held == rememberedDecisions || d.candidates > rememberedCandidates) {
		oldest := &d.ring[(d.next-d.held+rememberedDecisions)%rememberedDecisions]
		d.candidates -= len(oldest.decision.Candidates)
		*oldest = remembered{}
		d.held--
	}
	d.ring[d.next] = remembered{req.RequestID, req.Session, req.Model, decision}
	d.next = (d.next + 1) % rememberedDecisions
	d.held++
}

// newest calls match from the newest to the oldest until it reports true.
func (d *decisions) newest(match func(*remembered) bool) *remembered {
	for i := 1; i <= d.held; i++ {
		r := &d.ring[(d.next-i+rememberedDecisions)%rememberedDecisions]
		if match(r) {
			return r
		}
	}
	return nil
}

func (d *decisions) find(session, model string) *placement.Decision {
	r := d.newest(func(r *remembered) bool { return r.session == session && r.model == model && r.decision.Placed })
	if r == nil {
		return nil
	}
	decision := r.decision
	return &decision
}

func (d *decisions) ofRequest(id string) (placement.Decision, bool) {
	r := d.newest(func(r *remembered) bool { return r.request == id })
	if id == "" || r == nil {
		return placement.Decision{}, false
	}
	return r.decision, true
}
