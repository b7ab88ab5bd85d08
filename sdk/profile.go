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
	Path string
	Kind RouteKind
	// RefuseUpgrade answers a WebSocket upgrade with 426, so that the client falls back to HTTP.
	RefuseUpgrade bool
	// Retryable: the request may be tried again on another account while the client has seen nothing of an answer.
	Retryable bool
	// Local is the fixed answer of a RouteLocal.
	Local *Answer
}

// Identity holds ordered rules; the first hit wins and no hit means absent.
type Identity struct {
	// Session that the client itself says the request belongs to, the session that began it, and a subagent within it.
	// A request without a session is placed by itself and binds nothing. Parent and Subagent are reserved: the host checks
	// them, and does not read what they find.
	Session, Parent, Subagent []Extractor
	// Work is the kind of work that the client says the request is.
	Work []Extractor
	// PlacedWork lists kinds of work that bind nothing although their route is a turn.
	PlacedWork []string
	// Model that is asked for, and whether a streamed answer is: "true".
	Model, Streaming []Extractor
}

// Extractor finds one value in a request: in Header, or at BodyPointer (RFC 6901). With Inner the value found is itself
// JSON and Inner points into it. Pattern (RE2, one group) then picks the value.
type Extractor struct {
	Header, BodyPointer, Inner, Pattern string
}

// Exposure lists all that the adapter ever gets to see of traffic. Header names may end in * for a prefix.
type Exposure struct {
	RequestHeaders []string
	// RequestFields are JSON pointers into the body.
	RequestFields   []string
	ResponseHeaders []string
	// UrgentHeaders are response headers whose change is observed at once; others wait up to a second.
	UrgentHeaders []string
	// ErrorBodyBytes of a failed response; the host caps it at 64 KiB.
	ErrorBodyBytes int
}

// StreamGrammar says how a streamed answer is read.
type StreamGrammar struct {
	// Framing must be set: FramingNone when nothing streams.
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

// Fallbacks are templates; see [Answer]. [JSONFallbacks] makes all of them of one body.
type Fallbacks struct {
	// WrongKey: the client's key is missing or wrong. UnknownPath: no route names the request.
	WrongKey, UnknownPath Answer
	// UnavailableUntil: no account can serve, and it is known when one can. Unavailable: it is not known.
	UnavailableUntil, Unavailable Answer
	// AdapterAway: a lease is needed, and the adapter does not run.
	AdapterAway Answer
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

// Enumerations of the protocol. The zero value of each says nothing; where one may be left out, the field says what then
// holds.
type (
	// RouteKind says what a request is to its session: RouteTurn and the like.
	RouteKind = providerv1.RouteKind
	// Framing of streamed answers: FramingSSE and the like.
	Framing = providerv1.Framing
	// Outcome of a failed response, and with it what the host does: OutcomeQuotaExhausted and the like.
	Outcome = providerv1.Outcome
	// Scope says what an Outcome is about: ScopeAccount and the like.
	Scope = providerv1.Scope
	// WindowKind says what a Window is to people: WindowWeekly and the like.
	WindowKind = providerv1.WindowKind
	// WindowState says what is known of a Window: StateObserved and the like.
	WindowState = providerv1.WindowState
	// Source of a Window: SourceResponseHeader and the like.
	Source = providerv1.Source
	// AuthState of a login: AuthSignedIn and the like; zero: unknown.
	AuthState = providerv1.AuthState
	// Cause why an account cannot serve a request: CauseQuota and the like.
	Cause = providerv1.Cause
	// ForecastKind says how far a forecast can be relied on: ForecastExact and the like.
	ForecastKind = providerv1.ForecastKind
	// RefusalCode says why there is no lease: RefusalSignedOut and the like.
	RefusalCode = providerv1.RefusalCode
)

// Kinds of routes. A request that no route names is answered with Fallbacks.UnknownPath.
const (
	// RouteTurn is a piece of a session's work, such as the next answer of a conversation: it is placed on an account,
	// binds its session there, and reserves what it is expected to use. A profile has at least one.
	RouteTurn = providerv1.RouteKind_ROUTE_KIND_TURN
	// RoutePlaced is placed and reserves like a turn, and binds nothing: the title of a conversation.
	RoutePlaced = providerv1.RouteKind_ROUTE_KIND_PLACED
	// RouteAux goes to the account of its session if that has one, else to any that can serve; it binds and reserves
	// nothing: a count of tokens, a list of models.
	RouteAux = providerv1.RouteKind_ROUTE_KIND_AUX
	// RouteLocal is answered by the host with Route.Local, before it asks for the client's key.
	RouteLocal = providerv1.RouteKind_ROUTE_KIND_LOCAL
	// RouteOwn is relayed with the client's own credential, untouched, and has no account.
	RouteOwn = providerv1.RouteKind_ROUTE_KIND_OWN
)

// Framings of streams. One must be set even when nothing streams.
const (
	// FramingNone: answers are not streamed, or are relayed unread.
	FramingNone = providerv1.Framing_FRAMING_NONE
	// FramingSSE: text/event-stream. The type of an event is at TypePointer in its data, else in its event field.
	FramingSSE = providerv1.Framing_FRAMING_SSE
	// FramingJSONLines: one JSON value in each line, its type at TypePointer.
	FramingJSONLines = providerv1.Framing_FRAMING_JSON_LINES
)

// Outcomes of a classification, each with the scopes that it may have. The host reads no more into one than it says.
const (
	// OutcomeAccepted: no failure, the work is accepted. ScopeRequest.
	OutcomeAccepted = providerv1.Outcome_OUTCOME_ACCEPTED
	// OutcomeQuotaExhausted: an allowance is used up. It blocks the account, or one model of it, until Verdict.ClearsAt,
	// and the request is tried on another account. ScopeAccount or ScopeModel.
	OutcomeQuotaExhausted = providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED
	// OutcomeAuthFailed: the credential was refused. The lease is renewed and the request tried again, once; then the
	// account is blocked until its login changes, and another is tried. ScopeAccount.
	OutcomeAuthFailed = providerv1.Outcome_OUTCOME_AUTH_FAILED
	// OutcomeNotEntitled: the account's plan does not include this. It blocks like a quota that nobody dates, and
	// another account is tried; after a day it is asked again. ScopeAccount or ScopeModel.
	OutcomeNotEntitled = providerv1.Outcome_OUTCOME_NOT_ENTITLED
	// OutcomeThrottled: too much at once. With ScopeAccount the account pauses for Verdict.RetryAfter and another one
	// serves this request, while the session stays where it lives; with ScopeRequest, for what every account would be
	// told, the client gets the response.
	OutcomeThrottled = providerv1.Outcome_OUTCOME_THROTTLED
	// OutcomeOverloaded: the provider's own trouble, generic 5xx included. The client gets the response, and no account
	// is blamed. ScopeProvider.
	OutcomeOverloaded = providerv1.Outcome_OUTCOME_OVERLOADED
	// OutcomeClientError: the request itself is at fault. The client gets the response. ScopeRequest.
	OutcomeClientError = providerv1.Outcome_OUTCOME_CLIENT_ERROR
	// OutcomeContinuityLost: the session came from another account, and this one refused data made there, such as
	// encrypted reasoning or ids of files. The client gets the response, and no account is blamed. ScopeRequest.
	OutcomeContinuityLost = providerv1.Outcome_OUTCOME_CONTINUITY_LOST
	// OutcomeUnknownError: nothing is known of it. The client gets the response. ScopeRequest.
	OutcomeUnknownError = providerv1.Outcome_OUTCOME_UNKNOWN_ERROR
)

// Scopes of an outcome: what it says something about.
const (
	// ScopeAccount: every request on this account.
	ScopeAccount = providerv1.Scope_SCOPE_ACCOUNT
	// ScopeModel: requests for one model on this account, which is Verdict.Model, else that of the request.
	ScopeModel = providerv1.Scope_SCOPE_MODEL
	// ScopeRequest: this request and nothing else.
	ScopeRequest = providerv1.Scope_SCOPE_REQUEST
	// ScopeProvider: the provider, whatever the account.
	ScopeProvider = providerv1.Scope_SCOPE_PROVIDER
)

// Kinds of windows. Placement counts by Window.Length and Window.Models; of the kind it knows that WindowContext limits no
// account, and WindowCredit only when it is exhausted. [WindowOf] sets the kind of those that a length alone names.
const (
	// WindowRolling has a fixed length and begins again when it is over: five hours, a day.
	WindowRolling = providerv1.WindowKind_WINDOW_KIND_ROLLING
	// WindowSession is an allowance for what the provider calls a session.
	WindowSession = providerv1.WindowKind_WINDOW_KIND_SESSION
	// WindowWeekly is seven days long.
	WindowWeekly = providerv1.WindowKind_WINDOW_KIND_WEEKLY
	// WindowMonthly is a month long: 28 to 31 days.
	WindowMonthly = providerv1.WindowKind_WINDOW_KIND_MONTHLY
	// WindowIndividual is one person's share of an allowance that a workspace has in common.
	WindowIndividual = providerv1.WindowKind_WINDOW_KIND_INDIVIDUAL
	// WindowModel counts the models in Window.Models alone.
	WindowModel = providerv1.WindowKind_WINDOW_KIND_MODEL
	// WindowCredit counts what is spent beyond the other windows.
	WindowCredit = providerv1.WindowKind_WINDOW_KIND_CREDIT
	// WindowContext is how full one conversation is. It is for display.
	WindowContext = providerv1.WindowKind_WINDOW_KIND_CONTEXT
)

// States that an adapter reports. Only StateExhausted blocks; 100 % that is only observed keeps new sessions away and moves
// none. Only StateObserved, StateExhausted and StateAwaitingFirstUse may carry a percentage.
const (
	// StateObserved: UsedPercent is what the source said.
	StateObserved = providerv1.WindowState_WINDOW_STATE_OBSERVED
	// StateExhausted: the source said that nothing is left.
	StateExhausted = providerv1.WindowState_WINDOW_STATE_EXHAUSTED
	// StateAwaitingFirstUse: the source said that the window has not begun. Its clock is predicted from the first
	// accepted request on, so it is never to be concluded from 0 %.
	StateAwaitingFirstUse = providerv1.WindowState_WINDOW_STATE_AWAITING_FIRST_USE
	// StatePending: the source has not spoken yet.
	StatePending = providerv1.WindowState_WINDOW_STATE_PENDING
	// StateNotExposed: the source spoke, and left this window out.
	StateNotExposed = providerv1.WindowState_WINDOW_STATE_NOT_EXPOSED
	// StateUnknown: all else, such as a figure that cannot be read.
	StateUnknown = providerv1.WindowState_WINDOW_STATE_UNKNOWN
)

// Sources of a reading. Left out, it is that of the method.
const (
	// SourceOfficialClient: the official client was asked, as QuotaReader and QuotaWatcher do.
	SourceOfficialClient = providerv1.Source_SOURCE_OFFICIAL_CLIENT
	// SourceResponseHeader: headers of an answer, as Observe reads them.
	SourceResponseHeader = providerv1.Source_SOURCE_RESPONSE_HEADER
	// SourceResponseEvent: an event of a streamed answer.
	SourceResponseEvent = providerv1.Source_SOURCE_RESPONSE_EVENT
	// SourceRejection: the refusal that Classify was shown. From any other method it is not believed.
	SourceRejection = providerv1.Source_SOURCE_REJECTION
	// SourceStatusline: what the official client tells its statusline command.
	SourceStatusline = providerv1.Source_SOURCE_STATUSLINE
)

// States of a login, as its source tells them. A login that the source calls good can still be refused upstream.
const (
	// AuthSignedIn: there is a login.
	AuthSignedIn = providerv1.AuthState_AUTH_STATE_SIGNED_IN
	// AuthSignedOut: there is none.
	AuthSignedOut = providerv1.AuthState_AUTH_STATE_SIGNED_OUT
	// AuthExpired: there is one that is over and cannot be renewed.
	AuthExpired = providerv1.AuthState_AUTH_STATE_EXPIRED
)

// Reasons why there is no lease. All but RefusalTemporary block the account until its user has signed in again.
const (
	// RefusalSignedOut: nobody is signed in; there is no credential where one should be.
	RefusalSignedOut = providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT
	// RefusalExpired: the login is over, and the official way did not renew it.
	RefusalExpired = providerv1.RefusalCode_REFUSAL_CODE_EXPIRED
	// RefusalNotEligible: the login is good, and not of the kind that may be used: a pay-as-you-go key that is not
	// called one.
	RefusalNotEligible = providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE
	// RefusalTemporary: nothing is known against the account, and the adapter cannot say now. Another account serves
	// meanwhile. It is what an error that [Refuse] did not make counts as.
	RefusalTemporary = providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY
)

// Causes why an account cannot serve a request. Each account is counted under one of them.
const (
	// CauseQuota: an allowance is used up.
	CauseQuota = providerv1.Cause_CAUSE_QUOTA
	// CauseAuth: nobody is signed in, or the credential was refused.
	CauseAuth = providerv1.Cause_CAUSE_AUTH
	// CauseNotEntitled: its plan does not include the model, or what was asked for.
	CauseNotEntitled = providerv1.Cause_CAUSE_NOT_ENTITLED
	// CauseDisabled: it is switched off, by configuration or by its user.
	CauseDisabled = providerv1.Cause_CAUSE_DISABLED
	// CauseThrottled: it pauses, because the provider asked for that.
	CauseThrottled = providerv1.Cause_CAUSE_THROTTLED
	// CauseAdapterAway: the adapter does not run, and no lease is left.
	CauseAdapterAway = providerv1.Cause_CAUSE_ADAPTER_AWAY
	// CauseTried: this request tried it in vain and nothing blocks it, or tried as many as it may.
	CauseTried = providerv1.Cause_CAUSE_TRIED
	// CauseNetwork: the upstream could not be reached; no clock tells when it can. See [Unavailability.Passing].
	CauseNetwork = providerv1.Cause_CAUSE_NETWORK
	// CauseCredential: its credential did not come in time or cannot be read now. See [Unavailability.Passing].
	CauseCredential = providerv1.Cause_CAUSE_CREDENTIAL
)

// Kinds of a forecast.
const (
	// ForecastExact: the provider said when.
	ForecastExact = providerv1.ForecastKind_FORECAST_KIND_EXACT
	// ForecastNoLaterThan: ForecastAt is a bound, and it may be earlier.
	ForecastNoLaterThan = providerv1.ForecastKind_FORECAST_KIND_NO_LATER_THAN
	// ForecastUnknown: there is no time.
	ForecastUnknown = providerv1.ForecastKind_FORECAST_KIND_UNKNOWN
)
