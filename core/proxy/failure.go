package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

const (
	// rejectTime that a rejection may take to become durable.
	rejectTime = 5 * time.Second
	// lateTime that an inspected event behind the commit is held for its verdict and blocker.
	lateTime = time.Second
	// failureBodyTime that the beginning of a failed answer's body may take.
	failureBodyTime = 10 * time.Second
)

// failure is what an attempt got instead of accepted work, before commit: an answer or an inspected event.
type failure struct {
	status  int
	verdict Verdict
	judged  bool
	// relay hands it to the client, discard drops it.
	relay   func() step
	discard func()
}

// outcome as events name it.
func (f *failure) outcome() string {
	if !f.judged {
		return "unjudged"
	}
	return outcomeWord(f.verdict.Outcome)
}

func (f *failure) reason() string {
	if !f.judged {
		return "unjudged"
	}
	return f.verdict.Reason
}

// blocks reports whether it says something of the account that has to be kept.
func (f *failure) blocks() bool { return f.judged && f.verdict.blocks() }

// failed goes on after an answer of status 400 or more.
func (a *attempt) failed(resp *http.Response) step {
	beginning, cut := a.beginningOf(resp)
	f := &failure{
		status:  resp.StatusCode,
		discard: func() { resp.Body.Close() },
	}
	f.relay = func() step {
		a.end()
		a.relayRest(resp, beginning, f.outcome())
		return finished
	}
	evidence := a.evidence(resp, false)
	evidence.Evidence = &providerv1.ClassifyRequest_Body{Body: a.decoded(resp, beginning)}
	a.judge(a.ctx, f, evidence)
	if cut != nil && len(beginning) == 0 && !f.blocks() {
		f.discard()
		return a.networkFailed(cut, &connection{})
	}
	return a.goOn(f)
}

// beginningOf reads as much of a failed answer as may be exposed. The rest stays in the body. A body that is cut or stands
// still is judged and relayed as far as it came: its header was an answer.
func (a *attempt) beginningOf(resp *http.Response) (beginning []byte, cut error) {
	stalled := time.AfterFunc(failureBodyTime, func() { resp.Body.Close() })
	defer stalled.Stop()
	return io.ReadAll(io.LimitReader(resp.Body, int64(max(a.profile.exposure.errorBody, smallPiece))))
}

// judge asks the adapter what a failure means. It stays unjudged when no answer comes in time.
func (a *attempt) judge(ctx context.Context, f *failure, evidence *providerv1.ClassifyRequest) {
	v, err := a.proxy.adapters.Classify(ctx, a.account, evidence, a.sentAt)
	if err == nil {
		f.verdict, f.judged = v, true
	}
}

// circumstances of a failure of this attempt.
func (a *attempt) circumstances(f *failure) circumstances {
	return circumstances{
		status: f.status, judged: f.judged, renewed: a.renewed,
		repeatable: a.route.retryable && a.body.replayable(),
	}
}

// goOn does what follows from a failure.
func (a *attempt) goOn(f *failure) step {
	if a.clientLeft() {
		f.discard()
		return a.left()
	}
	reaction := react(f.verdict, a.circumstances(f))
	if reaction == renewLease {
		return a.renew(f)
	}
	a.recordFailure(f)
	switch reaction {
	case tryAnother:
		f.discard()
		a.reject(f.verdict.Rejection)
		a.failover = &Event{Operation: "failover", From: a.account.Name, Outcome: f.outcome(), Reason: f.reason()}
		return another
	case makeDetour:
		a.failure = f
		return throttled
	case answerInstead:
		f.discard()
		a.keepBlocker(f)
		a.refusedByAccount(f.status)
		return finished
	}
	a.keepBlocker(f)
	return f.relay()
}

// keepBlocker writes what a verdict says of the account although this request cannot go to another.
func (a *attempt) keepBlocker(f *failure) {
	if f.blocks() {
		a.reject(f.verdict.Rejection)
	}
}

// renew renews the lease that was refused.
func (a *attempt) renew(f *failure) step {
	lease, err := a.proxy.adapters.RefreshLease(a.ctx, a.account, a.lease)
	f.discard()
	var refused *LeaseRefusedError
	switch {
	case err == nil:
		a.recordFailure(f)
		a.lease, a.renewed = lease, true
		return again
	case a.clientLeft():
		return a.left()
	case errors.As(err, &refused):
		return a.refusedLease(refused, f.status)
	default:
		// The adapter went away: nothing is known of whether the login could have been renewed.
		a.recordFailure(f)
		a.end()
		return another
	}
}

// networkFailed goes on after an attempt that broke before anything was accepted.
func (a *attempt) networkFailed(err error, conn *connection) step {
	switch {
	case a.clientLeft():
		return a.left()
	case errors.Is(err, errBodyTooLarge), errors.Is(err, errBodyStalled), errors.Is(err, errBodyBroken):
		a.close()
		a.bodyFailed(err)
		return finished
	case errors.Is(err, wire.ErrUpstream), errors.Is(err, errBodySpent):
		a.end()
	case conn.stale() && !a.repeated && a.body.replayable():
		a.repeated = true
		return again
	default:
		a.reject(quota.Rejection{Cause: quota.CauseNetwork, Reason: "network"})
	}
	a.recordAttempt(0, "network", "network")
	a.cutOff++
	if a.livesHere() || !a.route.retryable || !a.body.replayable() {
		a.unreachable()
		return finished
	}
	return another
}

// redirected answers for the upstream: a client that followed would take its key along.
func (a *attempt) redirected(resp *http.Response) step {
	return a.unanswered(resp, fmt.Sprintf(
		"The %s service sends this request elsewhere (HTTP %d), where Noria does not take your account's key. See upstream in noria.hcl.",
		a.provider, resp.StatusCode))
}

// protocolChanged answers for an upstream that changes the protocol unasked: no answer would follow.
func (a *attempt) protocolChanged(resp *http.Response) step {
	return a.unanswered(resp, fmt.Sprintf(
		"The %s service changed the protocol (HTTP %d), which this request did not ask for. See upstream in noria.hcl.",
		a.provider, resp.StatusCode))
}

// unanswered gives an answer of our own in place of one that the client could do nothing with.
func (a *attempt) unanswered(resp *http.Response, sentence string) step {
	resp.Body.Close()
	a.end()
	a.recordAttempt(resp.StatusCode, "unknown_error", "unknown_error")
	a.ownAnswer(reply{
		sentence: sentence,
		causes:   map[providerv1.Cause]int{providerv1.Cause_CAUSE_TRIED: 1},
	}, "unknown_error", "unknown_error")
	return finished
}
