package upstream

import "time"

// kind of a behaviour.
type kind int

const (
	kindOK kind = iota
	kindQuota
	kindEarlyError
	kindLateError
	kindUnauthorized
	kindForbidden
	kindOverloaded
	kindUnavailable
	kindThrottled
	kindRefuseConnection
)

// Behaviour is how one request is answered.
type Behaviour struct {
	kind kind
	// text of a good answer, cut into events of one word.
	text string
	// resetsAt of the window that is full.
	resetsAt   time.Time
	window     string
	retryAfter time.Duration
	// before the status, and after the first event that carries output, the answer waits for these.
	before, middle <-chan struct{}
	// cutAfter so many events the connection is cut; 0: never.
	cutAfter int
	// telemetry in a stream.
	telemetry bool
}

// OK is a good answer: a stream or a document, as asked.
func OK() Behaviour { return Behaviour{kind: kindOK, text: "Hello from the scripted upstream."} }

// Text is a good answer that says text.
func Text(text string) Behaviour { return Behaviour{kind: kindOK, text: text} }

// Quota is a 429 of a used-up window, five_hour, seven_day or seven_day_opus, with the provider's own headers.
func Quota(window string, resetsAt time.Time) Behaviour {
	return Behaviour{kind: kindQuota, window: window, resetsAt: resetsAt}
}

// EarlyError is a 200 whose stream begins with a quota error behind the preamble.
func EarlyError(resetsAt time.Time) Behaviour {
	return Behaviour{kind: kindEarlyError, window: "five_hour", resetsAt: resetsAt}
}

// LateError is a 200 whose stream fails for quota after its first output.
func LateError(resetsAt time.Time) Behaviour {
	return Behaviour{kind: kindLateError, window: "five_hour", resetsAt: resetsAt, text: "Hello from the"}
}

// Unauthorized is a 401.
func Unauthorized() Behaviour { return Behaviour{kind: kindUnauthorized} }

// Forbidden is the 403 of a login that was revoked.
func Forbidden() Behaviour { return Behaviour{kind: kindForbidden} }

// Overloaded is Claude's 529, Codex's 503 server_is_overloaded.
func Overloaded() Behaviour { return Behaviour{kind: kindOverloaded} }

// Unavailable is a plain 503.
func Unavailable() Behaviour { return Behaviour{kind: kindUnavailable} }

// Throttled is a 429 that is no quota answer, with a hint unless retryAfter is 0.
func Throttled(retryAfter time.Duration) Behaviour {
	return Behaviour{kind: kindThrottled, retryAfter: retryAfter}
}

// CutBeforeStatus closes the connection without an answer.
func CutBeforeStatus() Behaviour { return Behaviour{kind: kindRefuseConnection} }

// After makes the answer wait until ready is closed before it begins.
func (b Behaviour) After(ready <-chan struct{}) Behaviour { b.before = ready; return b }

// HaltUntil makes a stream halt after its first output until ready is closed.
func (b Behaviour) HaltUntil(ready <-chan struct{}) Behaviour { b.middle = ready; return b }

// Cut makes the connection break after so many events.
func (b Behaviour) Cut(events int) Behaviour { b.cutAfter = events; return b }

// WithTelemetry makes a stream of Codex carry its codex.rate_limits event.
func (b Behaviour) WithTelemetry() Behaviour { b.telemetry = true; return b }

// Usage is what the windows of an account read. The zero value: the upstream does not say.
type Usage struct {
	FiveHour, Weekly               float64
	FiveHourResetsAt, WeeklyResets time.Time
}

// Known is false for the zero value.
func (u Usage) Known() bool { return u != Usage{} }
