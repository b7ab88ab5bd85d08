package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// attempt is one try of one request at one account. State knows it by its number until it ended.
type attempt struct {
	*exchange
	number  uint64
	placed  placement.Decision
	account quota.AccountID
	detour  bool
	lease   wire.Lease
	// renewed: the lease was. repeated: the request was sent again because an idle connection was stale. emptied: because
	// the stream was empty. Each happens once.
	renewed, repeated, emptied bool
	accepted, ended            bool
	// sentAt is when the request was sent last.
	sentAt time.Time
	// failure that is held with step throttled.
	failure *failure

	ctx    context.Context
	cancel context.CancelFunc
}

func newAttempt(x *exchange, number uint64, placed placement.Decision, detour bool) *attempt {
	a := &attempt{exchange: x, number: number, placed: placed, account: placed.Account, detour: detour}
	a.ctx, a.cancel = context.WithCancel(x.in.Context())
	return a
}

// through ends the attempt when try has, also when a panic cuts the connection, unless its answer is held on.
func (a *attempt) through(try func() step) (next step) {
	defer func() {
		if next != throttled {
			a.close()
		}
	}()
	return try()
}

// run gets a lease and tries.
func (a *attempt) run() step {
	lease, err := a.proxy.adapters.Lease(a.ctx, a.account)
	if err != nil {
		return a.noLease(err)
	}
	a.lease = lease
	a.attempts++
	return a.try()
}

// try sends the request until it is not to be sent again.
func (a *attempt) try() step {
	for {
		next := a.once()
		if next != again {
			return next
		}
	}
}

// once sends the request and takes its answer.
func (a *attempt) once() step {
	resp, conn, err := a.send(a.accountHeader())
	switch {
	case err != nil:
		return a.networkFailed(err, conn)
	case resp.StatusCode >= 400:
		return a.failed(resp)
	case resp.StatusCode >= 300:
		return a.redirected(resp)
	case resp.StatusCode < 200:
		return a.protocolChanged(resp)
	}
	return a.succeeded(resp)
}

// send makes a request of the client's and sends it.
func (a *attempt) send(header http.Header) (*http.Response, *connection, error) {
	conn := &connection{}
	out, err := a.outgoing(a.ctx, a.lease.BaseURL, header, conn)
	if err != nil {
		return nil, conn, err
	}
	a.sentAt = a.proxy.clock.Now()
	resp, err := a.proxy.transports.of(a.provider).RoundTrip(out)
	a.sent.upstream += a.proxy.clock.Now().Sub(a.sentAt)
	return resp, conn, err
}

// accountHeader is the request's header with the account's credential.
func (a *attempt) accountHeader() http.Header { return a.upstreamHeader(&a.lease, a.switched()) }

// outgoing is a request to an upstream with the client's method, path and body.
func (x *exchange) outgoing(ctx context.Context, baseURL string, header http.Header, conn *connection) (*http.Request, error) {
	base, err := x.proxy.transports.base(baseURL)
	if err != nil {
		return nil, err
	}
	to, err := target(base, x.path, x.in.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	source, err := x.body.open()
	if err != nil {
		return nil, err
	}
	out := (&http.Request{
		Method: x.in.Method, URL: to, Host: to.Host, Header: header, Body: source, ContentLength: x.body.length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(conn.watch(ctx))
	return out, nil
}

// switched reports whether headers that the client got from an account must not go to this one, because the session's
// last answer came from another. It is looked up only for requests that carry such headers.
func (a *attempt) switched() bool {
	for _, name := range a.profile.headers.accountBound {
		if _, has := a.in.Header[name]; has {
			last, known := a.proxy.lastAnswer(a.who.session)
			return !known || last != a.account
		}
	}
	return false
}

// accept tells state that the upstream accepted the work, and waits until that is durable.
func (a *attempt) accept() error {
	if a.accepted {
		return nil
	}
	a.accepted = true
	done, err := a.proxy.state.Accept(a.number, a.proxy.clock.Now())
	if err != nil {
		a.proxy.log.Error("acceptance not kept", "request", a.id, "error", err)
		return nil
	}
	if done.Sequence != 0 {
		if err := a.proxy.state.Durable(a.ctx, done.Sequence); err != nil {
			return err
		}
	}
	a.settled(done)
	return nil
}

// settled tells where the session lives now, unless that was known. State may have made a detour of the attempt.
func (a *attempt) settled(done placement.Acceptance) {
	none := quota.AccountID{}
	detour := a.detour || done.Home != none && done.Home != a.account
	a.proxy.answered(a.who.session, a.account, detour)
	e := Event{Operation: "bound", Attempt: a.number, Account: a.account.Name, From: done.From.Name, Reason: string(a.placed.How)}
	switch {
	case done.Bound && done.From != none:
		e.Operation = "moved"
	case done.Bound:
	case detour && !a.detour && !a.placed.Bound && a.binds():
		e.Operation, e.From, e.Reason = "detour", done.Home.Name, "cooldown"
	default:
		return // A detour that was asked for is told when it is chosen.
	}
	a.record(e)
}

// reject tells state that the account refused, and waits until that is durable. Before acceptance it ends the attempt.
func (a *attempt) reject(r quota.Rejection) {
	ctx, cancel := a.detached(rejectTime)
	defer cancel()
	a.rejectWithin(ctx, r)
}

func (a *attempt) rejectWithin(ctx context.Context, r quota.Rejection) {
	if a.ended {
		return
	}
	a.ended = !a.accepted
	sequence, err := a.proxy.state.Reject(a.number, r, a.proxy.clock.Now())
	if err == nil && sequence != 0 {
		err = a.proxy.state.Durable(ctx, sequence)
	}
	if err != nil {
		a.proxy.log.Warn("rejection not kept", "request", a.id, "account", a.account.String(), "error", err)
	}
}

// end gives the account's share back.
func (a *attempt) end() {
	if a.ended {
		return
	}
	a.ended = true
	a.proxy.state.End(a.number, a.proxy.clock.Now())
}

// close ends the attempt and whatever still runs of it.
func (a *attempt) close() {
	a.cancel()
	a.end()
}

// left ends the attempt because the client is gone. Nobody is to blame.
func (a *attempt) left() step {
	a.close()
	a.recordEnd(a.account.Name, "canceled", "client_left")
	return finished
}

// noLease goes on when the account has no credential to give.
func (a *attempt) noLease(err error) step {
	var refused *LeaseRefusedError
	switch {
	case a.clientLeft():
		return a.left()
	case !errors.As(err, &refused):
		a.end()
		a.adapterAway()
		return finished
	}
	return a.refusedLease(refused, 0)
}

// refusedLease leaves a blocker, or a cooldown if nothing is known against the account. status is that of the upstream's
// answer, when the lease was to be renewed because of one.
func (a *attempt) refusedLease(refused *LeaseRefusedError, status int) step {
	reason := refusalWord(refused.Code)
	if !refused.temporary() {
		a.reject(quota.Rejection{Cause: quota.CauseAuth, Reason: reason})
		a.recordAttempt(status, "auth_failed", reason)
		return another
	}
	a.reject(quota.Rejection{Cause: quota.CauseCredential, Reason: reason})
	a.recordAttempt(status, "unavailable", reason)
	if refused.Reason != "" {
		a.lacking = append(a.lacking, clause(refused.Reason))
	}
	a.failover = &Event{Operation: "failover", From: a.account.Name, Outcome: "unavailable", Reason: reason}
	if a.livesHere() {
		a.failover.Operation = "detour"
	}
	return aside
}

func refusalWord(code providerv1.RefusalCode) string {
	switch code {
	case providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT:
		return "signed_out"
	case providerv1.RefusalCode_REFUSAL_CODE_EXPIRED:
		return "expired"
	case providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE:
		return "not_eligible"
	}
	return "credential"
}

// recordFailure tells of a try that ended in a failure.
func (a *attempt) recordFailure(f *failure) { a.recordAttempt(f.status, f.outcome(), f.reason()) }

// recordAttempt tells of a try that did not succeed. Each is told once, where it is decided what follows: these events
// are counted. An attempt has more than one when it sent its request again.
func (a *attempt) recordAttempt(status int, outcome, reason string) {
	a.record(Event{Operation: "attempt", Attempt: a.number, Account: a.account.Name, Status: status, Outcome: outcome, Reason: reason})
}
