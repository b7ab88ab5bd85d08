package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// serveAux serves what is no turn: on the session's account if it has one, else on any eligible one. It binds and
// reserves nothing, blocks nothing and goes to no second account.
func (x *exchange) serveAux() {
	decision, err := x.auxAccount()
	switch {
	case err != nil:
		x.stateAway(err)
		return
	case !decision.Placed:
		x.unavailable(decision.Forecast)
		return
	}
	account := decision.Account
	a := &auxAttempt{attempt: newAttempt(x, 0, decision, false)}
	a.ended = true // State knows nothing of it.
	defer a.cancel()
	lease, err := x.proxy.adapters.Lease(a.ctx, account)
	var refused *LeaseRefusedError
	switch {
	case x.clientLeft():
		a.left()
	case errors.As(err, &refused):
		x.withoutLease(account, refused)
	case err != nil:
		x.adapterAway()
	default:
		a.lease = lease
		a.serve()
	}
}

// auxAccount finds the account. A placement that is asked for lives only as long as the question.
func (x *exchange) auxAccount() (placement.Decision, error) {
	if x.who.session != "" {
		if account, ok := x.proxy.state.SessionAccount(x.who.session); ok && x.proxy.state.Enabled(account) {
			return placement.Decision{Placed: true, Account: account}, nil
		}
	}
	number := x.proxy.attempts.Add(1)
	now := x.proxy.clock.Now()
	decision, err := x.proxy.state.Place(placement.Request{
		Attempt: number, RequestID: x.id, Session: x.who.session, Provider: x.provider, Model: x.who.model, At: now,
	})
	if err == nil && decision.Placed {
		x.proxy.state.End(number, now)
	}
	return decision, err
}

// withoutLease answers when the account has no credential to give.
func (x *exchange) withoutLease(account quota.AccountID, refused *LeaseRefusedError) {
	cause, outcome := providerv1.Cause_CAUSE_AUTH, "auth_failed"
	if refused.temporary() {
		cause, outcome = providerv1.Cause_CAUSE_CREDENTIAL, "unavailable"
	}
	why := ". See noria accounts list."
	if refused.Reason != "" {
		why = ": " + clause(refused.Reason) + "."
	}
	x.ownAnswer(reply{
		sentence: fmt.Sprintf("Noria cannot use the account %s now%s", account, why),
		causes:   map[providerv1.Cause]int{cause: 1},
	}, outcome, refusalWord(refused.Code))
}

// auxAttempt is the one try of a request that is no turn.
type auxAttempt struct{ *attempt }

func (a *auxAttempt) serve() {
	for {
		resp, conn, err := a.send(a.header())
		switch {
		case err != nil && a.clientLeft():
			a.left()
			return
		case err != nil && conn.stale() && !a.repeated && a.body.replayable():
			a.repeated = true
			continue
		case err != nil:
			a.recordAttempt(0, "network", "network")
			a.unreachable()
			return
		case a.own():
		case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified:
			a.redirected(resp)
			return
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
			if a.renew(resp) {
				continue
			}
			a.refusedByAccount(resp.StatusCode)
			return
		}
		outcome := "accepted"
		if resp.StatusCode >= 400 {
			outcome = "unjudged"
		}
		a.relayRest(resp, nil, outcome)
		return
	}
}

// header has the account's credential, or on own routes the client's.
func (a *auxAttempt) header() http.Header {
	if !a.own() {
		return a.accountHeader()
	}
	header := a.upstreamHeader(nil, false)
	if a.keyIn != "" {
		header.Del(a.keyIn)
	}
	return header
}

// renew has a refusal of the account judged, once for all that are equal, and renews the lease if that is what is wrong.
func (a *auxAttempt) renew(resp *http.Response) bool {
	defer resp.Body.Close()
	beginning, err := a.beginningOf(resp)
	if err != nil || a.renewed || !a.body.replayable() {
		return false
	}
	body := a.decoded(resp, beginning)
	key := fmt.Sprintf("%s %s %d %x", a.account, a.lease.Generation, resp.StatusCode, sha256.Sum256(body))
	lease := a.proxy.judged.once(a.ctx, key, a.proxy.clock.Now(), func() wire.Lease { return a.judgeRefusal(resp, body) })
	if lease.BaseURL == "" {
		return false
	}
	a.lease, a.renewed = lease, true
	return true
}

// judgeRefusal asks what the refusal means. It asks for all who wait, so this client's leaving must not spoil it.
func (a *auxAttempt) judgeRefusal(resp *http.Response, body []byte) wire.Lease {
	ctx := context.WithoutCancel(a.ctx)
	evidence := a.evidence(resp, false)
	evidence.Evidence = &providerv1.ClassifyRequest_Body{Body: body}
	f := &failure{status: resp.StatusCode}
	a.judge(ctx, f, evidence)
	a.recordFailure(f)
	if !f.judged || f.verdict.Outcome != providerv1.Outcome_OUTCOME_AUTH_FAILED {
		return wire.Lease{}
	}
	lease, err := a.proxy.adapters.RefreshLease(ctx, a.account, a.lease)
	if err != nil {
		return wire.Lease{}
	}
	return lease
}
