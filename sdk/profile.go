package sdk

import (
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Profile declares the wire of a provider. The host works from it without calling the adapter.
type Profile struct {
	Routes   []Route
	Identity Identity
	Exposure Exposure
	Stream   StreamGrammar
	Headers  HeaderPolicy
	// Fallbacks are the host's answers in the client's own shape when the adapter is not asked.
	Fallbacks Fallbacks
	// UsageLag is how long the provider's own figures trail completed work.
	UsageLag time.Duration
	// Windows that every account has, unless the adapter is a WindowDeclarer.
	Windows []WindowDeclaration
}

// Route is one kind of request of the client.
type Route struct {
	Method string
	// Path below the provider's prefix: exact, * for one segment, a last segment ** for the rest.
	Path          string
	Kind          RouteKind
	RefuseUpgrade bool
	Retryable     bool
	// Local is the fixed answer of a RouteLocal.
	Local *Answer
}

// Identity holds ordered rules; the first hit wins and no hit means absent.
type Identity struct {
	Session, Parent, Subagent, Work []Extractor
	// PlacedWork lists kinds of work that bind nothing although their route is a turn.
	PlacedWork       []string
	Model, Streaming []Extractor
}

// Extractor finds one value in a request: in Header, or at BodyPointer (RFC 6901). With Inner the value found is itself
// JSON and Inner points into it. Pattern (RE2, one group) then picks the value.
type Extractor struct {
	Header, BodyPointer, Inner, Pattern string
}

// Exposure lists all that the adapter ever gets to see of traffic. Header names may end in * for a prefix.
type Exposure struct {
	RequestHeaders, RequestFields, ResponseHeaders, UrgentHeaders []string
	// ErrorBodyBytes of a failed response; the host caps it at 64 KiB.
	ErrorBodyBytes int
}

// StreamGrammar says how a streamed answer is read.
type StreamGrammar struct {
	Framing Framing
	// TypePointer to the type in an event's data; with SSE it wins over the event field.
	TypePointer string
	// Preamble commits nothing, Inspected goes to Classify, Telemetry to Observe, Terminal completes the stream.
	Preamble, Inspected, Telemetry, Terminal []string
	// Accepted proves accepted work; empty: any type that is neither preamble nor inspected.
	Accepted []string
}

// HeaderPolicy names headers that must not pass.
type HeaderPolicy struct {
	// Credentials of the client, never sent up except on RouteOwn.
	Credentials []string
	// AccountBound headers of the client are dropped when the session's last answer came from another account.
	AccountBound []string
	// DropResponse headers are not handed to the client.
	DropResponse []string
}

// Fallbacks are templates; see [Answer].
type Fallbacks struct {
	WrongKey, UnknownPath, UnavailableUntil, Unavailable, AdapterAway Answer
}

// Answer is a response in the client's own shape. In Fallbacks, header values and body may hold {{sentence}},
// {{reset_unix}}, {{reset_seconds}}, {{reset_rfc3339}} and {{request}}.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
}

// WindowDeclaration says that an account has a window, so that one never read is unknown rather than absent.
type WindowDeclaration struct {
	ID     string
	Kind   WindowKind
	Length time.Duration
	Models []string
	Label  string
}

// Enumerations of the protocol.
type (
	RouteKind    = providerv1.RouteKind
	Framing      = providerv1.Framing
	Outcome      = providerv1.Outcome
	Scope        = providerv1.Scope
	WindowKind   = providerv1.WindowKind
	WindowState  = providerv1.WindowState
	Source       = providerv1.Source
	AuthState    = providerv1.AuthState
	Cause        = providerv1.Cause
	ForecastKind = providerv1.ForecastKind
	RefusalCode  = providerv1.RefusalCode
)

// Kinds of routes.
const (
	RouteTurn   = providerv1.RouteKind_ROUTE_KIND_TURN
	RoutePlaced = providerv1.RouteKind_ROUTE_KIND_PLACED
	RouteAux    = providerv1.RouteKind_ROUTE_KIND_AUX
	RouteLocal  = providerv1.RouteKind_ROUTE_KIND_LOCAL
	RouteOwn    = providerv1.RouteKind_ROUTE_KIND_OWN
)

// Framings of streams.
const (
	FramingNone      = providerv1.Framing_FRAMING_NONE
	FramingSSE       = providerv1.Framing_FRAMING_SSE
	FramingJSONLines = providerv1.Framing_FRAMING_JSON_LINES
)

// Outcomes of a classification.
const (
	OutcomeAccepted       = providerv1.Outcome_OUTCOME_ACCEPTED
	OutcomeQuotaExhausted = providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED
	OutcomeAuthFailed     = providerv1.Outcome_OUTCOME_AUTH_FAILED
	OutcomeNotEntitled    = providerv1.Outcome_OUTCOME_NOT_ENTITLED
	OutcomeThrottled      = providerv1.Outcome_OUTCOME_THROTTLED
	OutcomeOverloaded     = providerv1.Outcome_OUTCOME_OVERLOADED
	OutcomeClientError    = providerv1.Outcome_OUTCOME_CLIENT_ERROR
	OutcomeContinuityLost = providerv1.Outcome_OUTCOME_CONTINUITY_LOST
	OutcomeUnknownError   = providerv1.Outcome_OUTCOME_UNKNOWN_ERROR
)

// Scopes of an outcome.
const (
	ScopeAccount  = providerv1.Scope_SCOPE_ACCOUNT
	ScopeModel    = providerv1.Scope_SCOPE_MODEL
	ScopeRequest  = providerv1.Scope_SCOPE_REQUEST
	ScopeProvider = providerv1.Scope_SCOPE_PROVIDER
)

// Kinds of windows.
const (
	WindowRolling    = providerv1.WindowKind_WINDOW_KIND_ROLLING
	WindowSession    = providerv1.WindowKind_WINDOW_KIND_SESSION
	WindowWeekly     = providerv1.WindowKind_WINDOW_KIND_WEEKLY
	WindowMonthly    = providerv1.WindowKind_WINDOW_KIND_MONTHLY
	WindowIndividual = providerv1.WindowKind_WINDOW_KIND_INDIVIDUAL
	WindowModel      = providerv1.WindowKind_WINDOW_KIND_MODEL
	WindowCredit     = providerv1.WindowKind_WINDOW_KIND_CREDIT
	WindowContext    = providerv1.WindowKind_WINDOW_KIND_CONTEXT
)

// States that an adapter reports.
const (
	StateObserved         = providerv1.WindowState_WINDOW_STATE_OBSERVED
	StateExhausted        = providerv1.WindowState_WINDOW_STATE_EXHAUSTED
	StateAwaitingFirstUse = providerv1.WindowState_WINDOW_STATE_AWAITING_FIRST_USE
	StatePending          = providerv1.WindowState_WINDOW_STATE_PENDING
	StateNotExposed       = providerv1.WindowState_WINDOW_STATE_NOT_EXPOSED
	StateUnknown          = providerv1.WindowState_WINDOW_STATE_UNKNOWN
)

// Sources of a reading.
const (
	SourceOfficialClient = providerv1.Source_SOURCE_OFFICIAL_CLIENT
	SourceResponseHeader = providerv1.Source_SOURCE_RESPONSE_HEADER
	SourceResponseEvent  = providerv1.Source_SOURCE_RESPONSE_EVENT
	SourceRejection      = providerv1.Source_SOURCE_REJECTION
	SourceStatusline     = providerv1.Source_SOURCE_STATUSLINE
)

// States of a login.
const (
	AuthSignedIn  = providerv1.AuthState_AUTH_STATE_SIGNED_IN
	AuthSignedOut = providerv1.AuthState_AUTH_STATE_SIGNED_OUT
	AuthExpired   = providerv1.AuthState_AUTH_STATE_EXPIRED
)

// Reasons why there is no lease.
const (
	RefusalSignedOut   = providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT
	RefusalExpired     = providerv1.RefusalCode_REFUSAL_CODE_EXPIRED
	RefusalNotEligible = providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE
	RefusalTemporary   = providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY
)

// Causes why an account cannot serve. Of those that nobody's clock ends, CauseNetwork says that the upstream could not be
// reached, and CauseCredential that the account's credential cannot be had now: see [Unavailability.Passing].
const (
	CauseQuota       = providerv1.Cause_CAUSE_QUOTA
	CauseAuth        = providerv1.Cause_CAUSE_AUTH
	CauseNotEntitled = providerv1.Cause_CAUSE_NOT_ENTITLED
	CauseDisabled    = providerv1.Cause_CAUSE_DISABLED
	CauseThrottled   = providerv1.Cause_CAUSE_THROTTLED
	CauseAdapterAway = providerv1.Cause_CAUSE_ADAPTER_AWAY
	CauseTried       = providerv1.Cause_CAUSE_TRIED
	CauseNetwork     = providerv1.Cause_CAUSE_NETWORK
	CauseCredential  = providerv1.Cause_CAUSE_CREDENTIAL
)

// Kinds of a forecast.
const (
	ForecastExact       = providerv1.ForecastKind_FORECAST_KIND_EXACT
	ForecastNoLaterThan = providerv1.ForecastKind_FORECAST_KIND_NO_LATER_THAN
	ForecastUnknown     = providerv1.ForecastKind_FORECAST_KIND_UNKNOWN
)
