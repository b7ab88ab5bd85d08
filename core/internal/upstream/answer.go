package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// answer is one answer being given.
type answer struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	asked  asked
	usage  Usage
	status func(int)
	events int
	plan   Behaviour
}

// dispatch finds out what was asked for and answers by the behaviour.
func (a *answer) dispatch(b Behaviour) {
	a.plan = b
	if b.before != nil {
		a.wait(b.before)
	}
	path := a.r.URL.Path
	switch {
	case strings.HasSuffix(path, "/v1/messages"):
		a.claude()
	case strings.HasSuffix(path, "/v1/messages/count_tokens"):
		a.aux(claudeErrors, map[string]any{"input_tokens": 4242})
	case strings.HasSuffix(path, "/v1/models"):
		a.aux(claudeErrors, claudeModels)
	case strings.HasSuffix(path, "/responses"):
		a.codex()
	case strings.HasSuffix(path, "/codex/models"):
		a.aux(codexErrors, map[string]any{"models": []any{}})
	case strings.HasSuffix(path, "/wham/usage"):
		a.aux(codexErrors, a.codexUsage())
	case strings.HasSuffix(path, "/wham/accounts/check"):
		a.aux(codexErrors, codexAccounts)
	default:
		a.document(http.StatusNotFound, map[string]any{"error": map[string]any{"type": "not_found_error", "message": "Not found"}})
	}
}

// aux answers what is not a turn: only the credential matters.
func (a *answer) aux(errors errorDocuments, good any) {
	switch a.plan.kind {
	case kindUnauthorized:
		a.document(http.StatusUnauthorized, errors.unauthorized)
	case kindForbidden:
		a.document(http.StatusForbidden, errors.forbidden)
	case kindRefuseConnection:
		a.cut()
	default:
		a.document(http.StatusOK, good)
	}
}

// errorDocuments are a provider's bodies of failures.
type errorDocuments struct{ unauthorized, forbidden, overloaded, unavailable, throttled any }

// fail answers the failures that both providers have, and reports whether it was one.
func (a *answer) fail(errors errorDocuments, overloaded int) bool {
	switch a.plan.kind {
	case kindUnauthorized:
		a.document(http.StatusUnauthorized, errors.unauthorized)
	case kindForbidden:
		a.document(http.StatusForbidden, errors.forbidden)
	case kindOverloaded:
		a.document(overloaded, errors.overloaded)
	case kindUnavailable:
		a.document(http.StatusServiceUnavailable, errors.unavailable)
	case kindThrottled:
		if a.plan.retryAfter > 0 {
			a.w.Header().Set("retry-after", fmt.Sprint(int(a.plan.retryAfter.Seconds())))
		}
		a.document(http.StatusTooManyRequests, errors.throttled)
	case kindRefuseConnection:
		a.cut()
	default:
		return false
	}
	return true
}

// document answers with JSON.
func (a *answer) document(status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	a.w.Header().Set("content-type", "application/json")
	a.w.Header().Set("content-length", fmt.Sprint(len(raw)))
	a.status(status)
	a.w.WriteHeader(status)
	_, _ = a.w.Write(raw)
}

// stream begins a stream of events.
func (a *answer) stream() {
	a.w.Header().Set("content-type", "text/event-stream; charset=utf-8")
	a.w.Header().Set("cache-control", "no-cache")
	a.status(http.StatusOK)
	a.w.WriteHeader(http.StatusOK)
}

// event sends one event; format is JSON.
func (a *answer) event(kind, format string, args ...any) {
	_, err := fmt.Fprintf(a.w, "event: %s\ndata: "+format+"\n\n", append([]any{kind}, args...)...)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	a.events++
	if err != nil || a.plan.cutAfter == a.events {
		a.cut()
	}
}

// halt waits in the middle of a stream.
func (a *answer) halt() {
	if a.plan.middle != nil {
		a.wait(a.plan.middle)
	}
}

func (a *answer) wait(ready <-chan struct{}) {
	select {
	case <-ready:
	case <-a.r.Context().Done():
		a.cut()
	}
}

// cut breaks the connection.
func (a *answer) cut() { panic(http.ErrAbortHandler) }

// words cuts text into what single events carry, so that their concatenation is text.
func words(text string) []string { return strings.SplitAfter(text, " ") }

// quote makes a JSON string.
func quote(s string) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
