package proxy

import (
	"slices"
	"time"

	"github.com/noria-dev/noria/core/placement"
)

// step is how an attempt goes on.
type step int

const (
	// finished: the client has its answer, or left.
	finished step = iota
	// again: the same attempt sends the request once more.
	again
	// another: the attempt ended; the next account has its turn.
	another
	// throttled: the attempt holds a throttle's answer until it is known whether another account can take the request.
	throttled
	// aside: the attempt ended because the account has to pause. The next account has its turn, by a detour if the session
	// lives here.
	aside
)

// search is the way of a turn from account to account.
type search struct {
	*exchange
	// held is an attempt with a throttle's answer, until it is known whether another account can take the request.
	held *attempt
	// detour: what is accepted from now on binds nothing.
	detour bool
}

// serveWork finds an account for a turn: each at most once, within the bounds of attempts and time.
func (x *exchange) serveWork() {
	s := search{exchange: x}
	defer s.dropHeld()
	for s.advance() {
	}
}

// advance makes one more attempt, or ends the search. It reports whether there is more to do.
func (s *search) advance() bool {
	if s.searchedEnough() {
		s.end(s.searchEnded)
		return false
	}
	a, decision, err := s.place(s.detour)
	var next step
	switch {
	case err != nil:
		s.end(func() { s.stateAway(err) })
		return false
	case a != nil:
		next = a.through(func() step {
			s.handOver(a)
			return a.run()
		})
	case s.held != nil:
		a = s.held
		if next = a.through(a.waitAndRepeat); next != throttled {
			s.held = nil
		}
	default:
		s.unavailable(decision.Forecast)
		return false
	}
	switch next {
	case finished:
		return false
	case throttled:
		s.held = a
		s.detour = s.detour || a.livesHere()
	case aside:
		s.detour = s.detour || a.livesHere()
	}
	if !slices.Contains(s.tried, a.account) {
		s.tried = append(s.tried, a.account)
	}
	return true
}

// end ends the search with the answer that is held, or else with one of our own.
func (s *search) end(own func()) {
	if s.held == nil {
		own()
		return
	}
	s.held.giveUp()
}

// handOver ends what the account of an attempt takes over.
func (s *search) handOver(to *attempt) {
	if s.held != nil {
		s.held.leave(to)
		s.held = nil
	}
	s.failedOver(to)
}

// dropHeld drops what is held, however the search ends.
func (s *search) dropHeld() {
	if s.held != nil {
		s.held.failure.discard()
		s.held.close()
	}
}

// failedOver tells of a failover once it is known who takes the request.
func (x *exchange) failedOver(to *attempt) {
	if x.failover == nil {
		return
	}
	e := *x.failover
	x.failover = nil
	e.Attempt, e.Account = to.number, to.account.Name
	x.record(e)
}

// searchedEnough reports whether no further attempt may begin.
func (x *exchange) searchedEnough() bool {
	return x.attempts >= x.limits.Attempts || len(x.tried) > 0 && x.proxy.clock.Now().Sub(x.began) >= x.limits.AttemptTime
}

// place asks for an account. No attempt and no error: there is none.
func (x *exchange) place(detour bool) (*attempt, placement.Decision, error) {
	number := x.proxy.attempts.Add(1)
	decision, err := x.proxy.state.Place(placement.Request{
		Attempt: number, RequestID: x.id, Session: x.who.session, Provider: x.provider, Model: x.who.model,
		Binds: x.binds(), Detour: detour, Tried: slices.Clip(x.tried), At: x.proxy.clock.Now(),
	})
	if err != nil || !decision.Placed {
		return nil, decision, err
	}
	return newAttempt(x, number, decision, detour), decision, nil
}

// livesHere reports whether the session belongs to the attempt's account already, or is about to: then it is not
// bound elsewhere because of a throttle or of network trouble.
func (a *attempt) livesHere() bool {
	switch a.placed.How {
	case placement.HowBound, placement.HowFollow, placement.HowSibling:
		return true
	}
	return a.placed.Bound || a.detour
}

// leave ends a throttled attempt because another account takes the request.
func (a *attempt) leave(next *attempt) {
	a.failure.discard()
	a.reject(a.failure.verdict.Rejection)
	operation := "failover"
	if next.detour {
		operation = "detour"
	}
	a.record(Event{
		Operation: operation, Attempt: next.number, Account: next.account.Name, From: a.account.Name,
		Outcome: a.failure.outcome(), Reason: a.failure.reason(),
	})
	a.close()
}

// giveUp ends a throttled attempt by handing its answer to the client.
func (a *attempt) giveUp() step {
	a.reject(a.failure.verdict.Rejection)
	return a.failure.relay()
}

// waitAndRepeat waits once for the account's pause, if it is short, and sends the request again.
func (a *attempt) waitAndRepeat() step {
	pause, short := waitable(a.failure.verdict.Rejection)
	if a.waited || !short {
		return a.giveUp()
	}
	a.waited = true
	a.failure.discard()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return a.try()
	case <-a.in.Context().Done():
		return a.left()
	}
}
