package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func TestAProfileIsCheckedAndTheErrorNamesTheField(t *testing.T) {
	extractor := func(e *providerv1.Extractor) []*providerv1.Extractor { return []*providerv1.Extractor{e} }
	header := &providerv1.Extractor_Header{Header: "x-a"}
	many := func(n int) []string { return strings.Split(strings.Repeat("x ", n), " ")[:n] }
	tests := []struct {
		field  string
		change func(p *providerv1.Profile)
	}{
		{"routes", func(p *providerv1.Profile) { p.Routes = nil }},
		{"routes", func(p *providerv1.Profile) { p.Routes = make([]*providerv1.Route, maxRoutes+1) }},
		{"routes[0].method", func(p *providerv1.Profile) { p.Routes[0].Method = "post" }},
		{"routes[0].path", func(p *providerv1.Profile) { p.Routes[0].Path = "v1" }},
		{"routes[0].path", func(p *providerv1.Profile) { p.Routes[0].Path = "/v1/../x" }},
		{"routes[0].path", func(p *providerv1.Profile) { p.Routes[0].Path = "/**/x" }},
		{"routes[0].path", func(p *providerv1.Profile) { p.Routes[0].Path = "/v*" }},
		{"routes[0].kind", func(p *providerv1.Profile) { p.Routes[0].Kind = 0 }},
		{"routes[0].local", func(p *providerv1.Profile) { p.Routes[0].Kind = providerv1.RouteKind_ROUTE_KIND_LOCAL }},
		{"identity.session[0]", func(p *providerv1.Profile) { p.Identity.Session = extractor(&providerv1.Extractor{}) }},
		{"identity.session[0]: header", func(p *providerv1.Profile) {
			p.Identity.Session = extractor(&providerv1.Extractor{Source: &providerv1.Extractor_Header{Header: "a b"}})
		}},
		{"identity.model[0]: body_pointer", func(p *providerv1.Profile) {
			p.Identity.Model = extractor(&providerv1.Extractor{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "model"}})
		}},
		{"identity.work[0]: inner_pointer", func(p *providerv1.Profile) {
			p.Identity.Work = extractor(&providerv1.Extractor{Source: header, InnerPointer: "x"})
		}},
		{"identity.parent[0]: pattern", func(p *providerv1.Profile) {
			p.Identity.Parent = extractor(&providerv1.Extractor{Source: header, Pattern: "("})
		}},
		{"identity.subagent[0]: pattern", func(p *providerv1.Profile) {
			p.Identity.Subagent = extractor(&providerv1.Extractor{Source: header, Pattern: "a"})
		}},
		{"identity.streaming[0]: pattern", func(p *providerv1.Profile) {
			p.Identity.Streaming = extractor(&providerv1.Extractor{Source: header, Pattern: "(" + strings.Repeat("a", maxPattern) + ")"})
		}},
		{"identity.session", func(p *providerv1.Profile) {
			p.Identity.Session = make([]*providerv1.Extractor, maxExtractors+1)
		}},
		{"identity.placed_work", func(p *providerv1.Profile) { p.Identity.PlacedWork = many(maxNames + 1) }},
		{"exposure.request_headers: authorization", func(p *providerv1.Profile) { p.Exposure.RequestHeaders = []string{"authorization"} }},
		{"exposure.request_headers: authorization", func(p *providerv1.Profile) { p.Exposure.RequestHeaders = []string{"auth*"} }},
		{"exposure.request_headers: x-noria-key", func(p *providerv1.Profile) { p.Exposure.RequestHeaders = []string{"x-n*"} }},
		{"exposure.request_headers: x-secret", func(p *providerv1.Profile) {
			p.Headers.Credentials, p.Exposure.RequestHeaders = []string{"x-secret"}, []string{"x-secret"}
		}},
		{"exposure.request_headers[0]", func(p *providerv1.Profile) { p.Exposure.RequestHeaders = []string{"*"} }},
		{"exposure.response_headers: set-cookie", func(p *providerv1.Profile) { p.Exposure.ResponseHeaders = []string{"set-*"} }},
		{"exposure.urgent_headers", func(p *providerv1.Profile) { p.Exposure.UrgentHeaders = many(maxNames + 1) }},
		{"exposure.request_fields[0]", func(p *providerv1.Profile) { p.Exposure.RequestFields = []string{"a"} }},
		{"exposure.error_body_bytes", func(p *providerv1.Profile) { p.Exposure.ErrorBodyBytes = -1 }},
		{"stream.type_pointer", func(p *providerv1.Profile) { p.Stream.TypePointer = "type" }},
		{"stream.preamble[0]", func(p *providerv1.Profile) { p.Stream.Preamble = []string{""} }},
		{"stream.terminal", func(p *providerv1.Profile) { p.Stream.Terminal = many(maxNames + 1) }},
		{"headers.credentials[0]", func(p *providerv1.Profile) { p.Headers.Credentials = []string{"a:"} }},
		{"headers.account_bound[0]", func(p *providerv1.Profile) { p.Headers.AccountBound = []string{"a*b c"} }},
		{"headers.drop_response", func(p *providerv1.Profile) { p.Headers.DropResponse = many(maxNames + 1) }},
		{"fallbacks.wrong_key: status", func(p *providerv1.Profile) { p.Fallbacks.WrongKey.Status = 101 }},
		{"fallbacks.unavailable: headers[0]", func(p *providerv1.Profile) {
			p.Fallbacks.Unavailable.Headers = []*providerv1.Header{{Name: "Connection", Value: "close"}}
		}},
		{"fallbacks.adapter_away: body", func(p *providerv1.Profile) { p.Fallbacks.AdapterAway.Body = make([]byte, maxAnswerBody+1) }},
	}
	for _, tt := range tests {
		t.Run(tt.field, func(t *testing.T) {
			p := proto.CloneOf(claudeProfile())
			tt.change(p)
			_, err := CompileProfile("claude", p)
			if err == nil || !strings.HasPrefix(err.Error(), "compile profile of claude: "+tt.field) {
				t.Errorf("error %v, want one of %s", err, tt.field)
			}
		})
	}
	if _, err := CompileProfile("claude", nil); err == nil {
		t.Error("no error without a profile")
	}
}

func TestWhatAProfileDoesNotDeclareHasAPlainAnswer(t *testing.T) {
	p := compiled(t, "acme", &providerv1.Profile{Routes: []*providerv1.Route{
		{Method: "POST", Path: "/x", Kind: providerv1.RouteKind_ROUTE_KIND_TURN},
	}})
	header, body := p.fallbacks.unavailable.render(placeholderValues{sentence: "say \"why\"\nnow"})
	if p.fallbacks.wrongKey.status != 401 || p.fallbacks.unavailable.status != 503 || header.Get("X-Should-Retry") != "false" {
		t.Errorf("wrong key %d, unavailable %d, %v", p.fallbacks.wrongKey.status, p.fallbacks.unavailable.status, header)
	}
	if want := `{"type":"error","error":{"type":"noria_error","message":"say \"why\"\nnow"}}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
}

func TestTemplatesAreFilledForTheirPlace(t *testing.T) {
	template, err := compileTemplate(&providerv1.Answer{
		Status:  429,
		Headers: []*providerv1.Header{{Name: "x-said", Value: "{{sentence}}"}, {Name: "x-reset", Value: "{{reset_unix}}/{{reset_seconds}}/{{reset_rfc3339}}"}},
		Body:    []byte(`{"m":"{{sentence}}","r":"{{request}}"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	header, body := template.render(placeholderValues{sentence: "a \"b\"\r\né {{request}}", request: "r-1", resetsAt: resets, now: resets.Add(-90e9)})
	if got := header.Get("x-said"); got != `a "b"??? {{request}}` {
		t.Errorf("header %q, want printable ASCII", got)
	}
	if got := header.Get("x-reset"); got != "1893499200/90/2030-01-01T12:00:00Z" {
		t.Errorf("reset %q", got)
	}
	if want := `{"m":"a \"b\"\r\né {{request}}","r":"r-1"}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
	header, _ = template.render(placeholderValues{})
	if got := header.Get("x-reset"); got != "//" {
		t.Errorf("reset without a time %q, want nothing between the slashes", got)
	}
}

func TestRoutesMatchByMethodAndPath(t *testing.T) {
	turn := providerv1.RouteKind_ROUTE_KIND_TURN
	p := compiled(t, "acme", &providerv1.Profile{Routes: []*providerv1.Route{
		{Method: "POST", Path: "/v1/messages", Kind: turn}, {Method: "GET", Path: "/v1/*/status", Kind: turn},
		{Method: "GET", Path: "/files/**", Kind: turn}, {Method: "GET", Path: "/", Kind: turn}, {Method: "GET", Path: "/one/*", Kind: turn},
	}})
	for _, tt := range []struct {
		method, path string
		want         bool
	}{
		{"POST", "/v1/messages", true}, {"GET", "/v1/messages", false}, {"POST", "/v1/messages/x", false}, {"POST", "/v1", false},
		{"GET", "/v1/a/status", true}, {"GET", "/v1/a/b/status", false}, {"GET", "/v1/a", false}, {"GET", "/v1/a/status/x", false},
		{"GET", "/files/a", true}, {"GET", "/files/a/b/c", true}, {"GET", "/files", false},
		{"GET", "/", true}, {"GET", "/one/x", true}, {"GET", "/one", false}, {"GET", "/one/x/y", false},
	} {
		if _, got := p.match(tt.method, tt.path); got != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestTargetsKeepThePathAndQueryAsTheyCame(t *testing.T) {
	for _, tt := range []struct{ base, path, query, want string }{
		{"https://h.example", "/v1/messages", "beta=true&x=%20", "https://h.example/v1/messages?beta=true&x=%20"},
		{"https://h.example/base/", "/v1/a%20b", "", "https://h.example/base/v1/a%20b"},
		{"https://h.example/ba%2Fse", "/v1/a%3Fb", "", "https://h.example/ba%2Fse/v1/a%3Fb"},
	} {
		base, err := wire.ParseUpstream(tt.base)
		if err != nil {
			t.Fatal(err)
		}
		got, err := target(base, tt.path, tt.query)
		if err != nil || got.String() != tt.want {
			t.Errorf("%s and %s: %s, %v, want %s", tt.base, tt.path, got, err, tt.want)
		}
	}
}

func TestALeaseHasTheLastWordOnHeaders(t *testing.T) {
	lease := wire.Lease{
		Set:    []wire.Header{{Name: "authorization", Value: "Bearer account"}, {Name: "x-set", Value: "ours"}},
		Remove: []string{"x-removed"},
		Extend: []wire.Header{{Name: "anthropic-beta", Value: "oauth"}, {Name: "x-new", Value: "v"}},
	}
	for _, tt := range []struct{ beta, want string }{
		{"a,b", "a,b,oauth"}, {"a, oauth,b", "a, oauth,b"}, {"oauth-2", "oauth-2,oauth"}, {"", "oauth"},
	} {
		h := http.Header{"X-Set": {"theirs", "twice"}, "X-Removed": {"x"}}
		if tt.beta != "" {
			h["Anthropic-Beta"] = []string{tt.beta}
		}
		applyLease(h, &lease)
		want := http.Header{"Authorization": {"Bearer account"}, "X-Set": {"ours"}, "Anthropic-Beta": {tt.want}, "X-New": {"v"}}
		if fmt.Sprint(h) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", tt.beta, h, want)
		}
	}
}
