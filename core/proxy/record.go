package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// record adds what is known of the request to an event.
func (x *exchange) record(e Event) {
	e.At = x.proxy.clock.Now()
	e.RequestID = x.id
	e.Provider = x.provider
	e.SessionHash = sessionHash(x.who.session)
	e.Model = x.who.model
	if x.route != nil {
		e.RouteKind = x.kind
	}
	x.proxy.events.Record(e)
}

// recordEnd tells how the request ended, once.
func (x *exchange) recordEnd(account, outcome, reason string) {
	x.record(Event{
		Operation: "request", Account: account, Status: x.sent.status, Outcome: outcome, Reason: reason,
		Duration: x.proxy.clock.Now().Sub(x.began), FirstByte: x.sent.firstByte,
		Overhead: max(x.sent.firstByte-x.sent.upstream, 0), BytesUp: max(x.body.length, 0), BytesDown: x.sent.bytes,
	})
}

// outcomeWord is an outcome as events name it.
func outcomeWord(o providerv1.Outcome) string {
	return strings.ToLower(strings.TrimPrefix(o.String(), "OUTCOME_"))
}

// recoverPanic keeps one request's panic to that request: its connection is cut, and the log learns the place without
// any value.
func (x *exchange) recoverPanic() {
	value := recover()
	if value == nil {
		return
	}
	if err, ok := value.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		x.proxy.log.Error("request panicked", "request", x.id, "class", fmt.Sprintf("%T", value), "at", panicPlace())
	}
	panic(http.ErrAbortHandler)
}

// panicPlace is the function and line of the panic.
func panicPlace() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
		if !more {
			return "unknown"
		}
	}
}
