package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// State is what the proxy needs of bindings, blockers and reservations. Every method is safe for concurrent use, holds
// its lock for one transaction at most, and none but Durable waits for a disk.
type State interface {
	// Place selects an account for one attempt and reserves it, in one write transaction. A decision that placed
	// nothing carries the forecast and reserves nothing.
	Place(req placement.Request) (placement.Decision, error)
	// Accept records that the upstream accepted the attempt's work, and tells what that did: it binds (for a turn whose
	// binding is still the one seen when the attempt was placed, and never for a detour) and starts predicted clocks.
	Accept(attempt uint64, at time.Time) (placement.Acceptance, error)
	// End ends an attempt, however it ended. Work that was accepted counts as completed; the rest is as if never placed.
	End(attempt uint64, at time.Time)
	// Reject ends an attempt that was refused: a blocker, or a cooldown for throttling, network trouble and a credential
	// that did not come. The sequence must be durable before a failover is attempted on account of it. After acceptance
	// (an inspected event after commit) it records the blocker and the attempt goes on until End.
	Reject(attempt uint64, rejection quota.Rejection, at time.Time) (sequence uint64, err error)
	// SessionAccount is the account of the session's most recently accepted binding.
	SessionAccount(session string) (quota.AccountID, bool)
	// Enabled reports whether the account is configured, enabled, and not switched off.
	Enabled(account quota.AccountID) bool
	// Durable returns nil once sequence is durable, or at once when the journal is degraded (serving goes on from
	// memory), or ctx's error.
	Durable(ctx context.Context, sequence uint64) error
	// Ping takes the state lock, for /healthz.
	Ping(ctx context.Context) error
}

// Adapters is what the proxy needs of a provider's adapter process. Calls keep the deadlines of the protocol.
type Adapters interface {
	// Profile is the provider's current compiled profile; ok is false while none was ever received.
	Profile(provider string) (profile *Profile, ok bool)
	// Lease gives the cached lease of the account without any call when it is valid, else asks the adapter and waits at
	// most five seconds. Errors: *LeaseRefusedError, ErrAdapterAway.
	Lease(ctx context.Context, account quota.AccountID) (wire.Lease, error)
	// RefreshLease drops the lease of that generation and asks for a renewed one.
	RefreshLease(ctx context.Context, account quota.AccountID, refused wire.Lease) (wire.Lease, error)
	// Classify has a deadline of one second. Any error: unjudged. sentAt is when the request was sent that the evidence
	// answers.
	Classify(ctx context.Context, account quota.AccountID, evidence *providerv1.ClassifyRequest, sentAt time.Time) (Verdict, error)
	// Observe hands telemetry over and returns at once; it is coalesced and applied to state off the path. sentAt is
	// when the request whose answer carries it was sent.
	Observe(account quota.AccountID, observation *providerv1.ObserveRequest, sentAt time.Time)
	// Unavailable shapes our own answer.
	Unavailable(ctx context.Context, provider string, req *providerv1.UnavailableRequest) (*providerv1.Answer, error)
}

// Verdict is the adapter's reading of a failure, checked at the edge.
type Verdict struct {
	Outcome providerv1.Outcome
	// Rejection has a cause when the verdict is about the account or one of its models: QUOTA_EXHAUSTED, AUTH_FAILED and
	// NOT_ENTITLED always, THROTTLED if it is of the account.
	Rejection quota.Rejection
	// Reason is a code.
	Reason string
}

// ErrAdapterAway says that the adapter is not ready and nothing cached serves.
var ErrAdapterAway = errors.New("adapter away")

// LeaseRefusedError says that an account has no lease to give. Temporary ones are no fault of the account: its credential
// did not come in time, or the adapter cannot say.
type LeaseRefusedError struct {
	Code providerv1.RefusalCode
	// Reason names the account and what to do, in one sentence for the user; it may be empty.
	Reason string
}

func (e *LeaseRefusedError) Error() string { return "lease refused: " + e.Reason }

func (e *LeaseRefusedError) temporary() bool {
	return e.Code == providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY || e.Code == providerv1.RefusalCode_REFUSAL_CODE_UNSPECIFIED
}

// Events takes what happened to requests. Implementations return at once.
type Events interface {
	// Record adds one event; see core/events for the fields, none of which is free text.
	Record(event Event)
}

// Event is one thing that happened to a request.
type Event struct {
	At        time.Time
	Operation string // request, attempt, failover, detour, bound, moved, refused, unavailable, cut, passive
	RequestID string
	Attempt   uint64
	// SessionHash is a short hash, never the identity.
	SessionHash string
	Provider    string
	Account     string
	// From is the account that the request left, with failover, detour and moved.
	From      string
	Model     string
	RouteKind providerv1.RouteKind
	Status    int
	Outcome   string
	// Reason is an allow-listed code.
	Reason   string
	Duration time.Duration
	// FirstByte is the time from the request's last byte read to the answer's first byte written, Overhead the part of
	// it that was not spent waiting for an upstream.
	FirstByte time.Duration
	Overhead  time.Duration
	BytesUp   int64
	BytesDown int64
}
