package proxy

import (
	"net/http"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// maxWait for a throttled account when no other can take the request.
const maxWait = 10 * time.Second

// reaction is what follows from a failure of an attempt before commit.
type reaction int

const (
	// relayFailure hands it to the client as it came.
	relayFailure reaction = iota
	// answerInstead gives an answer of our own: a 401 or 403 of an account would make the client log out.
	answerInstead
	// renewLease renews the account's lease and tries again, in the same attempt.
	renewLease
	// tryAnother leaves a blocker and goes to the next account.
	tryAnother
	// makeDetour leaves a cooldown and goes to another account for this request, or waits.
	makeDetour
)

// circumstances of a failure.
type circumstances struct {
	status int
	// judged is false when the adapter did not answer in time.
	judged bool
	// renewed: the lease was renewed in this attempt already.
	renewed bool
	// repeatable: the request can be sent again, by its route and because its body was kept.
	repeatable bool
}

// react decides by the verdict and never reads more into it than the adapter did.
func react(v Verdict, c circumstances) reaction {
	blocks := v.blocks() && c.judged
	switch {
	case blocks && v.Outcome == providerv1.Outcome_OUTCOME_AUTH_FAILED && !c.renewed && c.repeatable:
		return renewLease
	case blocks && v.Outcome == providerv1.Outcome_OUTCOME_THROTTLED && c.repeatable:
		return makeDetour
	case blocks && c.repeatable:
		return tryAnother
	case c.status == http.StatusUnauthorized || c.status == http.StatusForbidden:
		return answerInstead
	}
	return relayFailure
}

// blocks reports whether the verdict says something of the account that has to be kept: a blocker or a cooldown.
func (v Verdict) blocks() bool { return v.Rejection.Cause != "" }

// waitable is the pause after which a throttled account can be tried again within one request.
func waitable(r quota.Rejection) (time.Duration, bool) {
	return r.RetryAfter, r.RetryAfter > 0 && r.RetryAfter <= maxWait
}
