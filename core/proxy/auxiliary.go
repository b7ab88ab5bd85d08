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

// serveBeside serves what is no turn: on the session's account if it has one, else on any eligible one. It binds and
// reserves nothing, blocks nothing and goes to no second account.
func (x *exchange) serveBeside() {
	account, forecast, ok := x.besideAccount()
	if !ok {
		x.unavailable(forecast)
		return
	}
	b := &beside{attempt: newAttempt(x, 0, placement.Decision{Account: account}, false)}
	b.ended = true // State knows nothing of it.
	defer b.cancel()
	lease, err := x.proxy.adapters.Lease(b.ctx, account)
	var refused *LeaseRefusedError
	switch {
	case x.clientLeft():
		b.left()
	case errors.As(err, &refused):
		x.withoutLease(account, refused)
	case err != nil:
		x.adapterAway()
	default:
		b.lease = lease
		b.serve()
	}
}

// besideAccount finds the account. A placement that is asked for lives only as long as the question.
func (x *exchange) besideAccount() (quota.AccountID, placement.Forecast, bool) {
	if x.who.session != "" {
		if account, ok := x.proxy.state.SessionAccount(x.who.session); ok && x.proxy.state.Enabled(account) {
			return account, placement.Forecast{}, true
		}
	}
	number := x.proxy.attempts.Add(1)
	now := x.proxy.clock.Now()
	decision, err := x.proxy.state.Place(placement.Request{
		Attempt: number, RequestID: x.id, Session: x.who.session, Provider: x.provider, Model: x.who.model, At: now,
	})
	if err != nil || !decision.Placed {
		return quota.AccountID{}, decision.Forecast, false
	}
	x.proxy.state.End(number, now)
	return decision.Account, placement.Forecast{}, true
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

// beside is the one try of a request that is no turn.
type beside struct{ *attempt }

func (b *beside) serve() {
	for {
		resp, conn, err := b.sendBeside()
		switch {
		case err != nil && b.clientLeft():
			b.left()
			return
		case err != nil && conn.stale() && !b.repeated && b.body.replayable():
			b.repeated = true
			continue
		case err != nil:
			b.recordAttempt(0, "network", "network")
			b.unreachable()
			return
		case b.kind == providerv1.RouteKind_ROUTE_KIND_OWN:
		case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified:
			b.redirected(resp)
			return
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
			if b.renewBeside(resp) {
				continue
			}
			b.refusedByAccount(resp.StatusCode)
			return
		}
		outcome := "accepted"
		if resp.StatusCode >= 400 {
			outcome = "unjudged"
		}
		b.relayRest(resp, nil, outcome)
		return
	}
}

// sendBeside sends with the account's credential, or on own routes with the client's.
func (b *beside) sendBeside() (*http.Response, *connection, error) {
	if b.kind != providerv1.RouteKind_ROUTE_KIND_OWN {
		return b.send()
	}
	conn := &connection{}
	header := b.upstreamHeader(nil, false)
	if b.keyIn != "" {
		header.Del(b.keyIn)
	}
	out, err := b.outgoing(b.ctx, b.lease.BaseURL, header, conn)
	if err != nil {
		return nil, conn, err
	}
	b.sentAt = b.proxy.clock.Now()
	resp, err := b.proxy.transports.of(b.provider).RoundTrip(out)
	return resp, conn, err
}

// renewBeside has a refusal of the account judged, once for all that are equal, and renews the lease if that is what is
// wrong.
func (b *beside) renewBeside(resp *http.Response) bool {
	defer resp.Body.Close()
	beginning, err := b.beginningOf(resp)
	if err != nil || b.renewed || !b.body.replayable() {
		return false
	}
	body := b.decoded(resp, beginning)
	key := fmt.Sprintf("%s %s %d %x", b.account, b.lease.Generation, resp.StatusCode, sha256.Sum256(body))
	lease := b.proxy.judged.once(key, b.proxy.clock.Now(), func() wire.Lease { return b.judgeBeside(resp, body) })
	if lease.BaseURL == "" {
		return false
	}
	b.lease, b.renewed = lease, true
	return true
}

// judgeBeside asks what the refusal means. It asks for all who wait, so this client's leaving must not spoil it.
func (b *beside) judgeBeside(resp *http.Response, body []byte) wire.Lease {
	ctx := context.WithoutCancel(b.ctx)
	evidence := b.evidence(resp, false)
	evidence.Evidence = &providerv1.ClassifyRequest_Body{Body: body}
	f := &failure{status: resp.StatusCode}
	b.judge(ctx, f, evidence)
	b.recordFailure(f)
	if !f.judged || f.verdict.Outcome != providerv1.Outcome_OUTCOME_AUTH_FAILED {
		return wire.Lease{}
	}
	lease, err := b.proxy.adapters.RefreshLease(ctx, b.account, b.lease)
	if err != nil {
		return wire.Lease{}
	}
	return lease
}
