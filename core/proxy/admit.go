package proxy

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// refusal is why a request is not served. Its body is fixed: nothing of the request comes back.
type refusal struct {
	status   int
	reason   string
	sentence string
	// shape of the answer; nil: plain.
	shape *template
}

// Refusals that no provider has a say in.
var (
	refuseHost = refusal{http.StatusForbidden, "host_not_allowed",
		"Noria refused this request: it was not addressed to the daemon's own name and port.", nil}
	refuseForm = refusal{http.StatusBadRequest, "malformed_request",
		"Noria refused this request: its target is malformed.", nil}
	refusePath = refusal{http.StatusNotFound, "unknown_path",
		"Noria serves no such path. A path begins with /PROVIDER of a configured provider and goes on as in that provider's own API.", nil}
	refuseOrigin = refusal{http.StatusForbidden, "origin_not_allowed",
		"Noria refused this request: it serves no web pages.", nil}
	refuseUpgrade = refusal{http.StatusBadRequest, "malformed_request",
		"Noria refused this request: it asks for another protocol.", nil}
	requireHTTP = refusal{http.StatusUpgradeRequired, "upgrade_refused",
		"Noria speaks HTTP here. Use it without upgrading.", nil}
	refuseLarge = refusal{http.StatusRequestEntityTooLarge, "body_too_large",
		"Noria refused this request: its body is too large.", nil}
	refuseStalled = refusal{http.StatusRequestTimeout, "timeout",
		"Noria gave up on this request: its body did not come.", nil}
)

// refusedTime is how long the rest of a refused request is read at most.
const refusedTime = 2 * time.Second

const wrongKeySentence = "Noria refused this request: the client key is missing or wrong. Start the client with noria run, or see noria token show."

// admit makes the checks in their order: host, form and path, origin, key, limits. Local routes are answered on the way.
func (p *Proxy) admit(x *exchange) bool {
	if !p.ownHost(x.in) {
		return x.refuse(refuseHost)
	}
	path, ok := originForm(x.in)
	if !ok {
		return x.refuse(refuseForm)
	}
	if p.answerHealth(x, path) {
		return false
	}
	key, provider, rest, ok := splitPrefix(path)
	if !ok || !cleanPath(rest) || !slices.Contains(p.providers(), provider) {
		return x.refuse(refusePath)
	}
	x.provider, x.path = provider, rest
	profile, known := p.adapters.Profile(provider)
	if known {
		if x.profile = profile; !x.findRoute() {
			return false
		}
	}
	if crossSite(x.in.Header) {
		return x.refuse(refuseOrigin)
	}
	if !p.keyAllowed(x, key) {
		return x.refuseKey()
	}
	if !known && !(x.awaitProfile() && x.findRoute()) {
		return false
	}
	return x.withinLimits()
}

// ownHost reports whether the Host header is exactly one of the daemon's names with the port that was connected to.
func (p *Proxy) ownHost(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	host := strings.ToLower(r.Host)
	name, ported := strings.CutSuffix(host, ":"+strconv.Itoa(addr.Port))
	if !ported && addr.Port != 80 && addr.Port != 443 {
		return false
	}
	switch name {
	case "127.0.0.1", "localhost", "[::1]", literal(addr.IP):
		return true
	}
	return slices.Contains(p.hosts, name)
}

// literal is an IP address as it stands in a Host header. A page whose own name was made to lead here has that name there.
func literal(ip net.IP) string {
	if ip.To4() == nil {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

// originForm gives the escaped path of a request whose target is a path on this server.
func originForm(r *http.Request) (string, bool) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return path, strings.HasPrefix(path, "/") && r.ProtoMajor == 1
}

// crossSite reports whether a browser made the request for a page. Clients send neither header, and no page has any
// business here, so an Origin that equals the Host is no exception.
func crossSite(h http.Header) bool {
	if _, has := h["Origin"]; has {
		return true
	}
	for _, site := range h["Sec-Fetch-Site"] {
		if site != "none" {
			return true
		}
	}
	return false
}

// keyAllowed looks for the client key where clients can put it.
func (p *Proxy) keyAllowed(x *exchange, inPath string) bool {
	if p.keys == nil {
		return true
	}
	h := x.in.Header
	switch {
	case inPath != "" && p.keys.Allowed(x.provider, inPath):
	case p.keys.Allowed(x.provider, first(h[keyHeader])):
	case p.keys.Allowed(x.provider, bearer(h)):
		x.keyIn = "Authorization"
	case p.keys.Allowed(x.provider, first(h["X-Api-Key"])):
		x.keyIn = "X-Api-Key"
	default:
		return false
	}
	return true
}

// findRoute finds the route and answers what is local or unknown, or asks for a protocol that the route refuses.
func (x *exchange) findRoute() bool {
	r, ok := x.profile.match(x.in.Method, x.path)
	if !ok {
		unknown := refusePath
		unknown.shape = x.profile.fallbacks.unknownPath
		return x.refuse(unknown)
	}
	x.route, x.kind = r, r.kind
	switch {
	case r.refuseUpgrade && x.asksToUpgrade():
		return x.refuse(requireHTTP)
	case r.kind == providerv1.RouteKind_ROUTE_KIND_LOCAL:
		x.answer(r.local, placeholderValues{request: x.id, now: x.proxy.clock.Now()})
		return false
	}
	return true
}

// awaitProfile waits for an adapter that has just been started.
func (x *exchange) awaitProfile() bool {
	patience := time.NewTimer(x.limits.AdapterTime)
	defer patience.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			if profile, ok := x.proxy.adapters.Profile(x.provider); ok {
				x.profile = profile
				return true
			}
		case <-patience.C:
			return x.refuse(refusal{http.StatusServiceUnavailable, "adapter_away",
				"Noria cannot serve this request: the adapter of this provider is not ready. See noria plugins list.", nil})
		case <-x.in.Context().Done():
			return false
		}
	}
}

func (x *exchange) asksToUpgrade() bool {
	_, asked := x.in.Header["Upgrade"]
	return asked
}

// withinLimits refuses other protocols and bodies that are declared too large.
func (x *exchange) withinLimits() bool {
	if x.asksToUpgrade() {
		return x.refuse(refuseUpgrade)
	}
	if x.in.ContentLength > x.limits.Body {
		return x.refuse(refuseLarge)
	}
	return true
}

// refuse answers with a refusal and closes the connection. It is always false.
func (x *exchange) refuse(why refusal) bool {
	shape := why.shape
	if shape == nil {
		shape = plain(why.status)
	}
	x.w.Header().Set("Connection", "close")
	// net/http may read on a little before it closes.
	_ = x.control.SetReadDeadline(time.Now().Add(refusedTime))
	if why.status == http.StatusUpgradeRequired {
		// RFC 9110 wants both headers with 426.
		x.w.Header().Set("Connection", "Upgrade, close")
		x.w.Header().Set("Upgrade", "HTTP/1.1")
	}
	x.answer(shape, placeholderValues{sentence: why.sentence, request: x.id, now: x.proxy.clock.Now()})
	x.record(Event{Operation: "refused", Status: shape.status, Outcome: "refused", Reason: why.reason})
	return false
}

// refuseKey gives the answer that the profile declares. Without a profile it is 400, where every client stops: one of
// them would answer 401 by renewing its own login.
func (x *exchange) refuseKey() bool {
	why := refusal{status: http.StatusBadRequest, reason: "wrong_key", sentence: wrongKeySentence}
	if x.profile != nil {
		why.shape = x.profile.fallbacks.wrongKey
	}
	return x.refuse(why)
}
