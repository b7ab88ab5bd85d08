package proxy

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// withoutKey takes the rig's own key off a call.
func withoutKey(c call, header ...string) call {
	c.header = http.Header{"X-Noria-Key": nil}
	for i := 0; i+1 < len(header); i += 2 {
		c.header.Set(header[i], header[i+1])
	}
	return c
}

func TestTheClientKeyIsTakenFromWhereClientsCanPutIt(t *testing.T) {
	keyed := turn("s1")
	keyed.path = "/k/" + testKey + keyed.path
	wrongPath := turn("s1")
	wrongPath.path = "/k/wrong" + wrongPath.path
	tests := []struct {
		name   string
		call   call
		served bool
	}{
		{"our own header", withoutKey(turn("s1"), "X-Noria-Key", testKey), true},
		{"bearer", withoutKey(turn("s1"), "Authorization", "Bearer "+testKey), true},
		{"bearer in small letters", withoutKey(turn("s1"), "authorization", "bearer "+testKey), true},
		{"API key", withoutKey(turn("s1"), "X-Api-Key", testKey), true},
		{"first part of the path", withoutKey(keyed), true},
		{"our own header beside the client's own login", withoutKey(turn("s1"), "X-Noria-Key", testKey, "Authorization", "Bearer own"), true},
		{"none", withoutKey(turn("s1")), false},
		{"a wrong one", withoutKey(turn("s1"), "X-Noria-Key", "wrong"), false},
		{"a wrong one in the path", withoutKey(wrongPath), false},
		{"a basic login", withoutKey(turn("s1"), "Authorization", "Basic "+testKey), false},
		{"a part of it", withoutKey(turn("s1"), "X-Noria-Key", testKey[:10]), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			got := r.do(tt.call)
			if !tt.served {
				wantOwn(t, got, 401, "authentication_error", "wrong key")
				if all := r.upstream.Requests(); len(all) != 0 {
					t.Errorf("reached upstream: %+v", all)
				}
				return
			}
			wantServed(t, got)
			for name, values := range r.upstream.Requests()[0].Header {
				if strings.Contains(strings.Join(values, " "), testKey) {
					t.Errorf("the key went up in %s", name)
				}
			}
		})
	}
}

func TestAWrongKeyIsRefusedAsTheProfileSays(t *testing.T) {
	r := newRig(t)
	wantOwn(t, r.do(withoutKey(codexTurn("s1"))), 400, "wrong key")
}

func TestWithoutAuthNoKeyIsNeeded(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) { o.Keys, o.AuthNone = nil, true })
	wantServed(t, r.do(withoutKey(turn("s1"))))
}

func TestAProxyIsNotBuiltOfLessThanItNeeds(t *testing.T) {
	r := newRig(t)
	for words, leaveOut := range map[string]func(o *Options){
		"no client keys":              func(o *Options) { o.Keys = nil },
		"option State is missing":     func(o *Options) { o.State = nil },
		"option Adapters is missing":  func(o *Options) { o.Adapters = nil },
		"option Events is missing":    func(o *Options) { o.Events = nil },
		"option Clock is missing":     func(o *Options) { o.Clock = nil },
		"option Logger is missing":    func(o *Options) { o.Logger = nil },
		"option Providers is missing": func(o *Options) { o.Providers = nil },
		"option Ready is missing":     func(o *Options) { o.Ready = nil },
	} {
		o := Options{
			State: r.state, Adapters: r.adapters, Events: r.events, Clock: r.clock, Logger: r.proxy.log, Keys: fakeKeys(testKey),
			Providers: r.proxy.providers, Ready: r.proxy.ready,
		}
		leaveOut(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want one that says %q", err, words)
		}
	}
}

func TestLocalAnswersNeedNoKey(t *testing.T) {
	tests := []struct {
		method, path string
		status       int
		body         string
	}{
		{http.MethodHead, "/claude", 200, ""},
		{http.MethodHead, "/claude/", 200, ""},
		{http.MethodGet, "/healthz", 200, "ok\n"},
		{http.MethodHead, "/healthz", 200, ""},
		{http.MethodGet, "/readyz", 200, `{"ready":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r := newRig(t)
			got := r.do(withoutKey(call{method: tt.method, path: tt.path}))
			if got.status != tt.status || got.body != tt.body {
				t.Errorf("status %d, body %q, want %d, %q", got.status, got.body, tt.status, tt.body)
			}
			if all := r.upstream.Requests(); len(all) != 0 {
				t.Errorf("reached upstream: %+v", all)
			}
		})
	}
}

func TestHealthAndReadinessSayNo(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) {
		r.state.pingErr = errors.New("lock not obtained")
		o.Ready = func() (bool, []byte) { return false, []byte(`{"ready":false}`) }
	})
	if got := r.do(call{method: http.MethodGet, path: "/healthz"}); got.status != 503 {
		t.Errorf("healthz: status %d, want 503", got.status)
	}
	if got := r.do(call{method: http.MethodGet, path: "/readyz"}); got.status != 503 || got.body != `{"ready":false}` {
		t.Errorf("readyz: status %d, body %q, want 503 and why", got.status, got.body)
	}
}

func TestWhatIsOnNoListIsRefused(t *testing.T) {
	tests := []struct {
		method, path string
		body         string
	}{
		{http.MethodPost, "/claude/v1/complete", "unknown path"},
		{http.MethodGet, "/claude/v1/messages", "unknown path"},
		{http.MethodPost, "/claude/v1/messages/", "no such path"},
		{http.MethodPost, "/claude//v1/messages", "no such path"},
		{http.MethodPost, "/claude/v1/%6dessages", "unknown path"},
		{http.MethodGet, "/claude/v1/account/%2e%2e/admin", "no such path"},
		{http.MethodGet, "/claude/v1/account/a%2fb", "no such path"},
		{http.MethodPost, "/gemini/v1/messages", "no such path"},
		{http.MethodPost, "/v1/messages", "no such path"},
		{http.MethodGet, "/", "no such path"},
		{http.MethodPost, "/healthz", "no such path"},
		{http.MethodGet, "/k/" + testKey, "no such path"},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r := newRig(t)
			wantOwn(t, r.do(call{method: tt.method, path: tt.path}), 404, tt.body)
			if all := r.upstream.Requests(); len(all) != 0 {
				t.Errorf("reached upstream: %+v", all)
			}
		})
	}
}

func TestAWebSocketIsRefusedSoThatTheClientFallsBack(t *testing.T) {
	for _, kind := range []providerv1.RouteKind{providerv1.RouteKind_ROUTE_KIND_LOCAL, providerv1.RouteKind_ROUTE_KIND_TURN} {
		t.Run(kind.String(), func(t *testing.T) {
			r := newRig(t)
			declared := codexProfile()
			declared.Routes[1].Kind = kind
			r.adapters.profiles["codex"] = compiled(t, "codex", declared)
			upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"x"}}
			w := newWitness()
			<-r.serveTo(w, call{method: http.MethodGet, path: "/codex/responses", header: upgrade})
			if w.order()[0] != "header 426" || w.header.Get("Upgrade") != "HTTP/1.1" || w.header.Get("Connection") != "Upgrade, close" {
				t.Errorf("%q with %v, want 426 with the protocol to use", w.order(), w.header)
			}
			if all := r.upstream.Requests(); len(all) != 0 {
				t.Errorf("reached upstream: %+v", all)
			}
			if got := r.events.of("refused"); len(got) != 1 || got[0].Reason != "upgrade_refused" {
				t.Errorf("events %+v, want a refused upgrade", got)
			}
		})
	}
}

func TestAnotherProtocolIsNoFallback(t *testing.T) {
	r := newRig(t)
	c := turn("s1")
	c.header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"h2c"}}
	wantOwn(t, r.do(c), 400, "another protocol")
}

func TestOriginsAreRefusedEvenOurOwn(t *testing.T) {
	r := newRig(t)
	for _, header := range []http.Header{
		{"Origin": {"http://" + r.addr}}, {"Origin": {""}}, {"Sec-Fetch-Site": {"same-origin"}}, {"Sec-Fetch-Site": {"none", "cross-site"}},
	} {
		c := turn("s1")
		c.header = header
		wantOwn(t, r.do(c), 403, "no web pages")
	}
	c := turn("s1")
	c.header = http.Header{"Sec-Fetch-Site": {"none"}}
	wantServed(t, r.do(c))
}

func TestBothLoopbackNamesAndConfiguredNamesAreOurs(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) { o.Hosts = []string{"Noria.Example"} })
	_, port, _ := strings.Cut(r.addr, ":")
	for host, ours := range map[string]bool{
		"127.0.0.1:" + port: true, "localhost:" + port: true, "LOCALHOST:" + port: true, "[::1]:" + port: true, "noria.example:" + port: true,
		"localhost": false, "127.0.0.1:": false, "127.0.0.2:" + port: false, "[::]:" + port: false, "localhost.:" + port: false,
		"noria.example.evil:" + port: false, "localhost:0" + port: false,
	} {
		req := r.request(turn("s1"))
		req.Host = host
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		resp.Body.Close()
		if got := resp.StatusCode == 200; got != ours {
			t.Errorf("%s: status %d, want ours: %v", host, resp.StatusCode, ours)
		}
	}
}

func TestARequestWaitsForAnAdapterThatIsJustStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, goodStream)
		late := &lateAdapters{fakeAdapters: r.adapters, profile: compiled(t, "claude", claudeProfile())}
		r.proxy.adapters = late
		late.asksUntilReady.Store(3)
		wantServed(t, r.do(turn("s1")))
		if got := late.asksUntilReady.Load(); got > 0 {
			t.Errorf("%d asks were left", got)
		}
	})
}

// lateAdapters have a profile only when they were asked for it often enough.
type lateAdapters struct {
	*fakeAdapters
	asksUntilReady atomic.Int64
	profile        *Profile
}

func (l *lateAdapters) Profile(string) (*Profile, bool) {
	return l.profile, l.asksUntilReady.Add(-1) < 0
}

func TestAnAdapterThatNeverBecameReadyIsSaidSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, goodStream)
		began := time.Now()
		wantOwn(t, r.do(call{path: "/late/v1/messages"}), 503, "the adapter of this provider is not ready")
		if waited := time.Since(began); waited != DefaultLimits().AdapterTime {
			t.Errorf("waited for %v, want %v", waited, DefaultLimits().AdapterTime)
		}
		wantOwn(t, r.do(withoutKey(call{path: "/late/v1/messages"})), 400, "client key is missing or wrong")
	})
}

func TestBodiesAreBounded(t *testing.T) {
	r := newRig(t, withLimits(Limits{Body: 1000}))
	fits := turn("s1")
	fits.body += strings.Repeat(" ", 1000-len(fits.body))
	wantServed(t, r.do(fits))
	tooLarge := turn("s1")
	tooLarge.body += strings.Repeat(" ", 1001-len(tooLarge.body))
	wantOwn(t, r.do(tooLarge), 413, "too large")

	chunked := r.request(tooLarge)
	chunked.ContentLength = -1
	resp, err := r.client.Do(chunked)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: status %d, want 413", resp.StatusCode)
	}
	if got := r.accountsOf(); got != "a" {
		t.Errorf("turns reached %q, want the one that fits", got)
	}
}

func TestCountingTokensBindsReservesAndMovesNothing(t *testing.T) {
	r := newRig(t)
	count := call{path: "/claude/v1/messages/count_tokens", session: "s1", body: `{"model":"` + testModel + `"}`}
	if got := r.do(count); got.status != 200 || got.body != `{"input_tokens":4242}` {
		t.Errorf("status %d, body %q", got.status, got.body)
	}
	if r.state.writes != 0 || len(r.state.bindings) != 0 {
		t.Error("something was bound")
	}
	r.state.bind("claude/s1", testModel, claudeB)
	r.upstream.Script("b", upstream.Quota("five_hour", resets))
	if got := r.do(count); got.status != 200 {
		t.Errorf("status %d on the session's account", got.status)
	}
	if all := r.upstream.Requests(); all[0].Token != "a" || all[1].Token != "b" {
		t.Errorf("reached %s and %s, want any account and then the session's", all[0].Token, all[1].Token)
	}
}

func TestEqualRefusalsOfWhatIsNoTurnAreJudgedOnce(t *testing.T) {
	r := newRig(t)
	r.upstream.Script("a", upstream.Unauthorized())
	const clients = 8
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			wantOwn(t, r.do(call{path: "/claude/v1/messages/count_tokens", session: "s1", body: `{}`}), 503, "refused the account a")
		})
	}
	all.Wait()
	if n := len(r.adapters.evidence()); n != 1 {
		t.Errorf("%d questions for %d equal refusals, want 1", n, clients)
	}
	if r.adapters.renewals != 1 {
		t.Errorf("%d renewals, want 1", r.adapters.renewals)
	}
	if r.state.blocked(claudeA) {
		t.Error("the account was blocked")
	}
}

func TestOwnRoutesKeepTheClientsOwnCredential(t *testing.T) {
	r := newRig(t)
	r.upstream.Script("mine", upstream.OK())
	got := r.do(call{method: http.MethodGet, path: "/claude/v1/account/me?x=1", header: http.Header{"Authorization": {"Bearer mine"}}})
	all := r.upstream.Requests()
	if got.status != 404 || len(all) != 1 || all[0].Token != "mine" || all[0].Query != "x=1" || all[0].Path != "/v1/account/me" {
		t.Errorf("status %d, upstream got %+v", got.status, all)
	}
	if got := all[0].Header.Get("X-Noria-Key"); got != "" {
		t.Error("our key went up")
	}
	r.upstream.Forget()
	r.do(withoutKey(call{method: http.MethodGet, path: "/claude/v1/account/me"}, "Authorization", "Bearer "+testKey))
	if all := r.upstream.Requests(); len(all) != 1 || all[0].Token != "" {
		t.Errorf("upstream got %+v, want a request without our key", all)
	}
}

func TestHeadersOfAnotherAccountAreDropped(t *testing.T) {
	tests := []struct {
		name  string
		setUp func(r *rig)
		sent  bool
	}{
		{"kept on the account that gave the last answer", func(r *rig) { r.state.bind("codex/s1", "gpt-6.2-sol", codexA) }, true},
		{"dropped after a switch", func(r *rig) {
			r.state.bind("codex/s1", "gpt-6.2-sol", codexA)
			r.upstream.Script("a", upstream.Quota("five_hour", resets))
		}, false},
		{"dropped when nobody is known to have answered", func(*rig) {}, false},
		{"dropped on the session's account after a detour", func(r *rig) {
			r.state.bind("codex/s1", "gpt-6.2-sol", codexA)
			r.upstream.Script("a", upstream.Throttled(30*time.Second), upstream.OK())
			if got := r.do(codexTurn("s1")); got.status != 200 {
				r.t.Fatalf("detour: status %d", got.status)
			}
			r.upstream.Forget()
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.setUp(r)
			c := codexTurn("s1")
			c.header = http.Header{"X-Codex-Turn-State": {"minted"}, "Chatgpt-Account-Id": {"own"}}
			if got := r.do(c); got.status != 200 {
				t.Fatalf("status %d", got.status)
			}
			turns := r.upstream.Turns()
			last := turns[len(turns)-1]
			if got := last.Header.Get("X-Codex-Turn-State") != ""; got != tt.sent {
				t.Errorf("sent to %s: %v, want %v", last.Token, got, tt.sent)
			}
			if last.AccountID != "" {
				t.Errorf("the client's own account id went up")
			}
		})
	}
}
