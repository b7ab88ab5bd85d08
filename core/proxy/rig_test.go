package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testKey   = "noria_CANARY0016MADEUPMADEUPMADEUPMADEUP"
	testModel = "claude-sonnet-5-5"
)

var (
	claudeA = quota.AccountID{Provider: "claude", Name: "a"}
	claudeB = quota.AccountID{Provider: "claude", Name: "b"}
	claudeC = quota.AccountID{Provider: "claude", Name: "c"}
	codexA  = quota.AccountID{Provider: "codex", Name: "a"}
	codexB  = quota.AccountID{Provider: "codex", Name: "b"}
)

// rig is a proxy on a loopback port, with fakes behind it and a scripted upstream.
type rig struct {
	t        testing.TB
	proxy    *Proxy
	state    *fakeState
	adapters *fakeAdapters
	events   *fakeEvents
	upstream *upstream.Server
	clock    *clock.Fake
	addr     string
	client   *http.Client
	// dial connects to the proxy of a rig without sockets.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// newRig starts a proxy over three accounts of claude and two of codex. adjust may change the options.
func newRig(t testing.TB, adjust ...func(*rig, *Options)) *rig {
	t.Helper()
	r := newFakes(t)
	r.upstream = upstream.Start()
	t.Cleanup(r.upstream.Close)
	for _, a := range r.state.accounts {
		r.adapters.bases[a] = r.upstream.URL
		if a.Provider == "codex" {
			r.adapters.bases[a] += "/backend-api/codex"
		}
		r.upstream.Script(a.Name, upstream.OK())
	}
	r.build(adjust)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}
	r.serve(listener)
	return r
}

// newFakes is a rig with fakes only.
func newFakes(t testing.TB) *rig {
	t.Helper()
	r := &rig{
		t: t, state: newFakeState(claudeA, claudeB, claudeC, codexA, codexB), adapters: newFakeAdapters(), events: newFakeEvents(),
		clock: clock.NewFake(time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)),
	}
	r.adapters.profiles["claude"] = compiled(t, "claude", claudeProfile())
	r.adapters.profiles["codex"] = compiled(t, "codex", codexProfile())
	return r
}

// build makes the proxy over the fakes.
func (r *rig) build(adjust []func(*rig, *Options)) {
	r.t.Helper()
	options := Options{
		State: r.state, Adapters: r.adapters, Events: r.events, Clock: clock.Wall{}, Logger: hclog.NewNullLogger(),
		Keys: fakeKeys(testKey), Providers: func() []string { return []string{"claude", "codex", "late"} },
		Ready: func() (bool, []byte) { return true, []byte(`{"ready":true}`) },
	}
	for _, f := range adjust {
		f(r, &options)
	}
	var err error
	if r.proxy, err = New(options); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) serve(listener net.Listener) {
	r.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(ctx, listener) }()
	r.t.Cleanup(func() {
		r.client.CloseIdleConnections()
		patience, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		if err := r.proxy.Shutdown(patience); err != nil {
			r.t.Errorf("Shutdown: %v", err)
		}
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
		if left := r.state.inFlight(); left != 0 {
			r.t.Errorf("%d attempts are still reserved", left)
		}
	})
}

func withLimits(l Limits) func(*rig, *Options) {
	return func(_ *rig, o *Options) { o.Limits = l }
}

func compiled(t testing.TB, provider string, declared *providerv1.Profile) *Profile {
	t.Helper()
	p, err := CompileProfile(provider, declared)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// call is a client's request.
type call struct {
	method, path, body string
	session            string
	header             http.Header
	ctx                context.Context
}

// turn is a streamed turn of claude.
func turn(session string) call {
	return call{path: "/claude/v1/messages", session: session, body: `{"model":"` + testModel + `","stream":true,"messages":[]}`}
}

// codexTurn is a turn of codex.
func codexTurn(session string) call {
	return call{path: "/codex/responses", session: session, body: `{"model":"gpt-6.2-sol","stream":true,"input":[]}`}
}

// result of a call: what the client read, and whether the answer broke.
type result struct {
	status int
	header http.Header
	body   string
	broken error
}

// do makes a call and reads the whole answer.
func (r *rig) do(c call) result {
	r.t.Helper()
	resp, err := r.client.Do(r.request(c))
	if err != nil {
		return result{broken: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return result{status: resp.StatusCode, header: resp.Header, body: string(body), broken: err}
}

func (r *rig) request(c call) *http.Request {
	r.t.Helper()
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(c.ctx, c.method, "http://"+r.addr+c.path, strings.NewReader(c.body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if _, has := c.header["X-Noria-Key"]; !has {
		req.Header.Set("X-Noria-Key", testKey)
	}
	switch {
	case c.session != "" && strings.HasPrefix(c.path, "/codex"):
		req.Header.Set("Session-Id", c.session)
	case c.session != "":
		req.Header.Set("X-Claude-Code-Session-Id", c.session)
	}
	return req
}

// accountsOf gives the accounts that turns reached, in order.
func (r *rig) accountsOf() string {
	var all []string
	for _, request := range r.upstream.Turns() {
		all = append(all, request.Token)
	}
	return strings.Join(all, " ")
}

// wantServed fails unless the answer is a whole good stream of claude.
func wantServed(t testing.TB, got result) {
	t.Helper()
	if got.status != 200 || got.broken != nil || !strings.HasSuffix(got.body, "data: {\"type\":\"message_stop\"}\n\n") {
		t.Errorf("status %d, broken %v, body %q, want a whole stream", got.status, got.broken, got.body)
	}
}

// wantOwn fails unless the answer is one of our own with this status and these words.
func wantOwn(t testing.TB, got result, status int, words ...string) {
	t.Helper()
	if got.status != status || got.header.Get("X-Noria-Request") == "" {
		t.Errorf("status %d, request id %q, want an own answer of %d: %s", got.status, got.header.Get("X-Noria-Request"), status, got.body)
	}
	for _, word := range words {
		if !strings.Contains(got.body, word) {
			t.Errorf("body %q, want %q in it", got.body, word)
		}
	}
}

func claudeProfile() *providerv1.Profile {
	header := func(name string) *providerv1.Extractor {
		return &providerv1.Extractor{Source: &providerv1.Extractor_Header{Header: name}}
	}
	return &providerv1.Profile{
		Routes: []*providerv1.Route{
			{Method: "POST", Path: "/v1/messages", Kind: providerv1.RouteKind_ROUTE_KIND_TURN, Retryable: true},
			{Method: "POST", Path: "/v1/messages/count_tokens", Kind: providerv1.RouteKind_ROUTE_KIND_AUX, Retryable: true},
			{Method: "GET", Path: "/v1/models", Kind: providerv1.RouteKind_ROUTE_KIND_AUX, Retryable: true},
			{Method: "GET", Path: "/v1/account/**", Kind: providerv1.RouteKind_ROUTE_KIND_OWN},
			{Method: "POST", Path: "/v1/once", Kind: providerv1.RouteKind_ROUTE_KIND_TURN},
			{Method: "HEAD", Path: "/", Kind: providerv1.RouteKind_ROUTE_KIND_LOCAL, Local: &providerv1.Answer{Status: 200}},
		},
		Identity: &providerv1.Identity{
			Session: []*providerv1.Extractor{
				header("x-claude-code-session-id"),
				{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/metadata/user_id"}, InnerPointer: "/session_id"},
				{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/metadata/user_id"}, Pattern: `_session_([0-9a-f-]{36})$`},
			},
			Model:     []*providerv1.Extractor{{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/model"}, Pattern: `^(.+?)(?:\[1m\])?$`}},
			Streaming: []*providerv1.Extractor{{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/stream"}}},
		},
		Exposure: &providerv1.Exposure{
			ResponseHeaders: []string{"anthropic-ratelimit-*", "retry-after", "content-type", "cf-mitigated"}, ErrorBodyBytes: 16 << 10,
		},
		Stream: &providerv1.StreamGrammar{
			Framing: providerv1.Framing_FRAMING_SSE, TypePointer: "/type", Preamble: []string{"message_start", "ping"},
			Inspected: []string{"error"}, Terminal: []string{"message_stop", "error"},
		},
		Headers: &providerv1.HeaderPolicy{Credentials: []string{"authorization", "x-api-key", "cookie"}},
		Fallbacks: &providerv1.FallbackAnswers{
			WrongKey:         claudeAnswer(401, "authentication_error", "wrong key"),
			UnknownPath:      claudeAnswer(404, "not_found_error", "unknown path"),
			UnavailableUntil: claudeAnswer(429, "rate_limit_error", "{{sentence}}", "anthropic-ratelimit-unified-reset", "{{reset_unix}}"),
			Unavailable:      claudeAnswer(503, "api_error", "{{sentence}}"),
			AdapterAway:      claudeAnswer(503, "api_error", "{{sentence}}"),
		},
	}
}

func claudeAnswer(status int32, kind, message string, header ...string) *providerv1.Answer {
	a := &providerv1.Answer{
		Status: status, Body: fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":"%s"}}`, kind, message),
		Headers: []*providerv1.Header{{Name: "content-type", Value: "application/json"}, {Name: "x-should-retry", Value: "false"}},
	}
	for i := 0; i+1 < len(header); i += 2 {
		a.Headers = append(a.Headers, &providerv1.Header{Name: header[i], Value: header[i+1]})
	}
	return a
}

func codexProfile() *providerv1.Profile {
	const metadata = "x-codex-turn-metadata"
	return &providerv1.Profile{
		Routes: []*providerv1.Route{
			{Method: "POST", Path: "/responses", Kind: providerv1.RouteKind_ROUTE_KIND_TURN, Retryable: true},
			{Method: "GET", Path: "/responses", Kind: providerv1.RouteKind_ROUTE_KIND_LOCAL, RefuseUpgrade: true, Local: &providerv1.Answer{Status: 405}},
			{Method: "GET", Path: "/models", Kind: providerv1.RouteKind_ROUTE_KIND_AUX, Retryable: true},
		},
		Identity: &providerv1.Identity{
			Session: []*providerv1.Extractor{
				{Source: &providerv1.Extractor_Header{Header: "session-id"}},
				{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/client_metadata/session_id"}},
				{Source: &providerv1.Extractor_Header{Header: metadata}, InnerPointer: "/session_id"},
				{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/prompt_cache_key"}},
			},
			Work:       []*providerv1.Extractor{{Source: &providerv1.Extractor_Header{Header: metadata}, InnerPointer: "/thread_source"}},
			PlacedWork: []string{"thread_title"},
			Model:      []*providerv1.Extractor{{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/model"}}},
			Streaming:  []*providerv1.Extractor{{Source: &providerv1.Extractor_BodyPointer{BodyPointer: "/stream"}}},
		},
		Exposure: &providerv1.Exposure{ResponseHeaders: []string{"x-codex-*", "retry-after"}, RequestFields: []string{"/reasoning/effort"}, ErrorBodyBytes: 16 << 10},
		Stream: &providerv1.StreamGrammar{
			Framing: providerv1.Framing_FRAMING_SSE, TypePointer: "/type",
			Preamble:  []string{"response.created", "response.in_progress", "response.queued", "codex.rate_limits"},
			Inspected: []string{"error", "response.failed"}, Telemetry: []string{"codex.rate_limits"},
			Terminal: []string{"response.completed", "response.incomplete", "response.failed", "error"},
		},
		Headers: &providerv1.HeaderPolicy{
			Credentials: []string{"authorization", "chatgpt-account-id"}, AccountBound: []string{"x-codex-turn-state"},
		},
		Fallbacks: &providerv1.FallbackAnswers{
			WrongKey: claudeAnswer(400, "invalid_request_error", "wrong key"),
			UnavailableUntil: claudeAnswer(429, "usage_limit_reached", "{{sentence}}",
				"x-codex-promo-message", "{{sentence}}", "x-reset", "{{reset_unix}}"),
			Unavailable: claudeAnswer(400, "invalid_request_error", "{{sentence}}"),
		},
	}
}
