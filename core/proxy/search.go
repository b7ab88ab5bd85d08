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

// serveWork finds an account for a turn: each at most once, within the bounds of attempts and time.
func (x *exchange) serveWork() {
	var held *attempt
	detour := false
	for {
		if x.searchedEnough() {
			if held != nil {
				held.giveUp()
				return
			}
			x.searchEnded()
			return
		}
		a, decision, err := x.place(detour)
		if err != nil {
			x.placementFailed(held, err)
			return
		}
		var next step
		switch {
		case a != nil:
			if held != nil {
				held.leave(a)
				held = nil
			}
			x.failedOver(a)
			next = a.run()
		case held != nil:
			a, held = held, nil
			next = a.waitAndRepeat()
		default:
			x.unavailable(decision.Forecast)
			return
		}
		switch next {
		case finished:
			return
		case throttled:
			held = a
			detour = detour || a.livesHere()
		case aside:
			detour = detour || a.livesHere()
		}
		if !slices.Contains(x.tried, a.account) {
			x.tried = append(x.tried, a.account)
		}
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
	return x.attempts >= x.limits.Attempts || x.attempts > 0 && x.proxy.clock.Now().Sub(x.began) >= x.limits.AttemptTime
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
	x.attempts++
	return newAttempt(x, number, decision, detour), decision, nil
}

func (x *exchange) placementFailed(held *attempt, err error) {
	x.proxy.log.Error("placement failed", "request", x.id, "error", err)
	if held != nil {
		held.giveUp()
		return
	}
	x.ownAnswer(reply{sentence: "Noria cannot serve this request: its state is not available. See noria doctor."}, "unavailable", "no_account")
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
	defer a.close()
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
