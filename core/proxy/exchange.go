package proxy

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// exchange is one request of a client on its way through the proxy.
type exchange struct {
	proxy   *Proxy
	limits  *Limits
	w       http.ResponseWriter
	control *http.ResponseController
	in      *http.Request
	id      string

	// Set by admit.
	provider string
	// path is escaped and begins behind the provider's prefix.
	path    string
	profile *Profile
	route   *route
	// keyIn is the client header that held the client key, when it was not our own.
	keyIn string

	// Set by serve.
	kind providerv1.RouteKind
	who  identity
	body *body
	// began is when the last byte of the request had been read.
	began time.Time

	// attempts at the upstream, and the accounts of those that ended. One without a lease is no attempt at the upstream: it
	// costs nobody anything.
	attempts int
	tried    []quota.AccountID
	// failover that waits for the account that takes the request.
	failover *Event
	// waited: the one wait for a throttled account was made.
	waited bool
	// cutOff counts attempts that the network ended; lacking tells of accounts whose credential did not come.
	cutOff  int
	lacking []string
	sent    progress
}

// progress of the answer to the client.
type progress struct {
	status    int
	bytes     int64
	firstByte time.Duration
	// upstream is the part of firstByte that was spent waiting for upstreams.
	upstream time.Duration
}

// ServeHTTP serves one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		proxy: p, limits: p.limits.Load(), w: w, control: http.NewResponseController(w), in: r,
		id: p.requests.next(), began: p.clock.Now(),
	}
	defer x.recoverPanic()
	// What the request before left on the connection is over.
	x.renewWrite()
	if !p.admit(x) {
		return
	}
	x.serve()
}

// serve reads the request and serves it by the kind of its route.
func (x *exchange) serve() {
	var err error
	if x.body, err = x.proxy.readBody(x.in, x.control, x.limits); err != nil {
		x.bodyFailed(err)
		return
	}
	defer x.body.release()
	x.began = x.proxy.clock.Now()
	if !x.body.replayable() {
		x.record(Event{Operation: "passive", Reason: "replay_memory"})
	}
	x.who = x.profile.identify(x.in.Header, x.look())
	if x.kind == providerv1.RouteKind_ROUTE_KIND_TURN && x.who.work != "" && x.profile.placedWork[x.who.work] {
		x.kind = providerv1.RouteKind_ROUTE_KIND_PLACED
	}
	if x.work() {
		x.serveWork()
		return
	}
	x.serveAux()
}

// work reports whether the request asks for work that is placed.
func (x *exchange) work() bool {
	return x.kind == providerv1.RouteKind_ROUTE_KIND_TURN || x.kind == providerv1.RouteKind_ROUTE_KIND_PLACED
}

// own reports whether the request goes up with the client's own credential.
func (x *exchange) own() bool { return x.kind == providerv1.RouteKind_ROUTE_KIND_OWN }

// binds reports whether acceptance binds the session.
func (x *exchange) binds() bool {
	return x.kind == providerv1.RouteKind_ROUTE_KIND_TURN && x.who.session != ""
}

// clientLeft reports whether the client gave the request up.
func (x *exchange) clientLeft() bool { return x.in.Context().Err() != nil }

func (x *exchange) bodyFailed(err error) {
	switch {
	case errors.Is(err, errBodyTooLarge):
		x.refuse(refuseLarge)
	case errors.Is(err, errBodyStalled):
		x.refuse(refuseStalled)
	case x.clientLeft():
		x.record(Event{Operation: "request", Outcome: "canceled", Reason: "client_left"})
	default:
		x.refuse(refusal{http.StatusBadRequest, "body_unreadable", "Noria could not read the body of this request.", nil})
	}
}

// streaming reports whether the client asked for a stream. It is looked up only for answers of our own.
func (x *exchange) streaming() bool {
	if x.body == nil {
		return false
	}
	return x.profile.streaming.extract(x.in.Header, x.look())[ruleStreaming] == "true"
}

// renewWrite gives the client time for one more write.
func (x *exchange) renewWrite() { _ = x.control.SetWriteDeadline(time.Now().Add(x.limits.WriteTime)) }

// answer gives an answer of our own.
func (x *exchange) answer(t *template, v placeholderValues) {
	header, body := t.render(v)
	x.write(t.status, header, body)
}

// write sends a whole answer of our own.
func (x *exchange) write(status int, header http.Header, body []byte) {
	to := x.w.Header()
	for name, values := range header {
		to[name] = values
	}
	to.Set(requestHeader, x.id)
	if _, typed := to["Content-Type"]; !typed {
		to["Content-Type"] = nil
	}
	to.Set("Content-Length", strconv.Itoa(len(body)))
	x.begin(status)
	if x.in.Method != http.MethodHead {
		// A client that does not take its answer is net/http's to notice.
		_ = x.relayed(x.w.Write(body))
	}
}

// begin sends the status, after which nothing can be taken back.
func (x *exchange) begin(status int) {
	x.sent.status = status
	x.sent.firstByte = x.proxy.clock.Now().Sub(x.began)
	x.renewWrite()
	x.w.WriteHeader(status)
}

// relayed counts what was written.
func (x *exchange) relayed(n int, err error) error {
	x.sent.bytes += int64(n)
	return err
}

// detached is a context for what has to be finished although the client left.
func (x *exchange) detached(patience time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.in.Context()), patience)
}
