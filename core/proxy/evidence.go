package proxy

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of what an adapter is shown of one answer.
const (
	maxExposedHeaders = 96
	maxExposedValue   = 2 << 10
	maxObservedEvents = 16
)

// exposed gives the headers that the profile exposes, cut to the bounds, in the order of their names. No profile may
// expose a credential or a cookie: see compileExposure.
func exposed(h http.Header, names *names) []*providerv1.Header {
	var matching []string
	for name := range h {
		if names.match(name) {
			matching = append(matching, name)
		}
	}
	slices.Sort(matching)
	out := make([]*providerv1.Header, 0, len(matching))
	for _, name := range matching {
		for _, value := range h[name] {
			if len(out) == maxExposedHeaders {
				return out
			}
			out = append(out, &providerv1.Header{Name: name, Value: value[:min(len(value), maxExposedValue)]})
		}
	}
	return out
}

// evidence for Classify, but for the body or event itself.
func (a *attempt) evidence(resp *http.Response, committed bool) *providerv1.ClassifyRequest {
	e := &a.profile.exposure
	out := &providerv1.ClassifyRequest{
		Account: a.account.Name, Model: a.who.model, Route: a.kind, Status: int32(resp.StatusCode),
		RequestHeaders: exposed(a.in.Header, &e.requestHeaders), ResponseHeaders: exposed(resp.Header, &e.responseHeaders),
		Committed: committed, ObservedAt: timestamppb.New(a.proxy.clock.Now()),
	}
	if len(e.fieldPointers) > 0 {
		out.RequestFields = a.requestFields()
	}
	return out
}

// requestFields finds the exposed fields of the request's body.
func (a *attempt) requestFields() map[string]string {
	e := &a.profile.exposure
	scan := newFieldScan(e.fieldPointers, nil)
	scan.all(a.look())
	fields := map[string]string{}
	for i, f := range scan.values {
		if f.ok {
			fields[e.requestFields[i]] = f.value[:min(len(f.value), maxExposedValue)]
		}
	}
	return fields
}

// decoded is the beginning of a failed answer's body as the profile exposes it.
func (a *attempt) decoded(resp *http.Response, beginning []byte) []byte {
	limit := a.profile.exposure.errorBody
	encoding := resp.Header.Get("Content-Encoding")
	if encoding == "" {
		return beginning[:min(len(beginning), limit)]
	}
	reader, release, err := a.proxy.decoders.reader(encoding, bytes.NewReader(beginning))
	if err != nil {
		return nil
	}
	defer release()
	// What is cut or no encoding at all gives as much as could be decoded.
	body, _ := io.ReadAll(io.LimitReader(reader, int64(limit)))
	return body
}

// observe hands over what an answer tells of the account's windows. It calls nobody: the adapter is asked later. An
// answer to the client's own credential tells of its own account, and a refusal of what is no turn of limits of its own.
func (a *attempt) observe(resp *http.Response, events []*providerv1.Event) {
	if a.own() || a.kind != providerv1.RouteKind_ROUTE_KIND_TURN && resp.StatusCode >= http.StatusBadRequest {
		return
	}
	headers := exposed(resp.Header, &a.profile.exposure.responseHeaders)
	if len(headers) == 0 && len(events) == 0 {
		return
	}
	a.proxy.adapters.Observe(a.account, &providerv1.ObserveRequest{
		Account: a.account.Name, Model: a.who.model, Status: int32(resp.StatusCode), ResponseHeaders: headers,
		Events: events, ObservedAt: timestamppb.New(a.proxy.clock.Now()), Completion: a.proxy.completions.Add(1),
	}, a.sentAt)
}
