package proxy

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/noria-dev/noria/sdk/wire"
)

// keyHeader carries the client key, requestHeader the id of a request on answers of our own.
const (
	keyHeader     = "X-Noria-Key"
	requestHeader = "X-Noria-Request"
)

func canonicalHeader(name string) string { return textproto.CanonicalMIMEHeaderKey(name) }

// hopByHop headers belong to one connection.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true,
}

// credentialHeaders never go up from a client, whatever a profile says, and no profile may expose them.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Cookie", "Proxy-Authorization", keyHeader}

// neverSent headers tell where a request came from, or are answered here.
var neverSent = map[string]bool{
	keyHeader: true, requestHeader: true, "Expect": true, "Forwarded": true, "Via": true, "X-Real-Ip": true,
	"Host": true, "Content-Length": true,
}

// listedInConnection are the headers that a Connection header declares hop-by-hop.
func listedInConnection(h http.Header) map[string]bool {
	var listed map[string]bool
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = textproto.TrimString(name); name == "" || strings.EqualFold(name, "close") || strings.EqualFold(name, "keep-alive") {
				continue
			}
			if listed == nil {
				listed = map[string]bool{}
			}
			listed[canonicalHeader(name)] = true
		}
	}
	return listed
}

// upstreamHeader is what of a client's header goes to an upstream: all but what belongs to the connection, to us, or to
// an account. The lease's own headers come last, so nothing that the client sent can take them away.
func (x *exchange) upstreamHeader(lease *wire.Lease, dropAccountBound bool) http.Header {
	in := x.in.Header
	out := make(http.Header, len(in)+4)
	listed := listedInConnection(in)
	for name, values := range in {
		if !hopByHop[name] && !neverSent[name] && !listed[name] && !strings.HasPrefix(name, "X-Forwarded-") {
			out[name] = values
		}
	}
	if lease != nil {
		for _, name := range credentialHeaders {
			delete(out, name)
		}
		for _, name := range x.profile.headers.credentials {
			delete(out, name)
		}
		if dropAccountBound {
			for _, name := range x.profile.headers.accountBound {
				delete(out, name)
			}
		}
		applyLease(out, lease)
	}
	if _, sent := out["User-Agent"]; !sent {
		// Else net/http sends its own.
		out["User-Agent"] = nil
	}
	if x.work() {
		out["Accept-Encoding"] = identityEncoding
	}
	return out
}

var identityEncoding = []string{"identity"}

// applyLease puts the account's headers on a request.
func applyLease(h http.Header, lease *wire.Lease) {
	for _, name := range lease.Remove {
		h.Del(name)
	}
	for _, set := range lease.Set {
		h[canonicalHeader(set.Name)] = []string{set.Value}
	}
	for _, add := range lease.Extend {
		name := canonicalHeader(add.Name)
		if !httpguts.HeaderValuesContainsToken(h[name], add.Value) {
			h[name] = []string{strings.Join(append(h[name][:len(h[name]):len(h[name])], add.Value), ",")}
		}
	}
}

// copyResponseHeader hands an upstream's header to the client, unchanged but for what belongs to the connection, cookies
// and what the profile drops.
func copyResponseHeader(to, from http.Header, drop []string) {
	listed := listedInConnection(from)
	for name, values := range from {
		if !hopByHop[name] && !listed[name] && name != "Set-Cookie" {
			to[name] = values
		}
	}
	for _, name := range drop {
		delete(to, name)
	}
	if _, sent := to["Content-Type"]; !sent {
		// Else net/http guesses one.
		to["Content-Type"] = nil
	}
}

// bearer is the token of an Authorization header, empty if it holds none.
func bearer(h http.Header) string {
	scheme, token, _ := strings.Cut(first(h["Authorization"]), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
