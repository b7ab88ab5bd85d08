package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Events of the streams below.
const (
	claudeStart    = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n"
	claudePing     = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	claudeDelta    = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\n\n"
	claudeStop     = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	claudeQuota    = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}\n\n"
	claudeBusy     = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
	claudeThrottle = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n"
	comment        = ": hold the line\n\n"
)

// openStream makes a call whose answer the test reads itself.
func (r *rig) openStream(c call) (*http.Response, *bufio.Reader) {
	r.t.Helper()
	resp, err := r.client.Do(r.request(c))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp, bufio.NewReader(resp.Body)
}

func TestTelemetryIsHandedOverAndRelayed(t *testing.T) {
	r := newRig(t)
	usage := upstream.Usage{FiveHour: 42, Weekly: 7, FiveHourResetsAt: resets, WeeklyResets: resets}
	r.upstream.SetUsage("a", usage)
	r.upstream.Script("a", upstream.OK().WithTelemetry())
	got := r.do(codexTurn("s1"))
	if !strings.Contains(got.body, "event: codex.rate_limits") || got.header.Get("X-Codex-Primary-Used-Percent") != "42" {
		t.Errorf("header %v, body %q, want telemetry relayed", got.header, got.body)
	}
	seen := r.adapters.observations()
	if len(seen) == 0 {
		t.Fatal("nothing was handed over")
	}
	var types []string
	for _, o := range seen {
		if o.GetModel() != "gpt-6.2-sol" || o.GetAccount() != "a" {
			t.Errorf("observation of %s, %s", o.GetAccount(), o.GetModel())
		}
		for _, e := range o.GetEvents() {
			types = append(types, e.GetType())
		}
		for _, h := range o.GetResponseHeaders() {
			if !strings.HasPrefix(h.GetName(), "X-Codex-") {
				t.Errorf("header %s was handed over, which is not exposed", h.GetName())
			}
		}
	}
	if !slices.Equal(types, []string{"codex.rate_limits"}) {
		t.Errorf("events handed over: %v, want the telemetry once", types)
	}
	if n := r.adapters.calls.Load(); n != 0 {
		t.Errorf("%d calls to the adapter, want 0", n)
	}
}

func TestExposureLimitsWhatTheAdapterSees(t *testing.T) {
	r := newRig(t)
	c := codexTurn("s1")
	c.body = `{"model":"gpt-6.2-sol","input":"SECRET PROMPT","reasoning":{"effort":"low"}}`
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.do(c)
	got := r.adapters.evidence()
	if len(got) == 0 {
		t.Fatal("nothing was judged")
	}
	if text := got[0].String(); strings.Contains(text, "SECRET") || strings.Contains(text, testKey) || strings.Contains(text, "Bearer") {
		t.Errorf("the adapter saw %s", text)
	}
	if got[0].GetRequestFields()["/reasoning/effort"] != "low" || len(got[0].GetRequestFields()) != 1 {
		t.Errorf("fields %v, want the exposed one", got[0].GetRequestFields())
	}
}

func TestWhichHeadersAreExposedDependsOnTheirNamesOnly(t *testing.T) {
	h := http.Header{"Set-Cookie": {"secret"}, "Other": {"x"}, "X-A-Long": {strings.Repeat("v", maxExposedValue+1)}}
	for i := range 2 * maxExposedHeaders {
		h.Set(fmt.Sprintf("X-B-%03d", i), "v")
	}
	all, err := compileNames("response_headers", []string{"x-*"}, []string{"Set-Cookie"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		got := exposed(h, &all)
		if len(got) != maxExposedHeaders || len(got[0].GetValue()) != maxExposedValue || got[1].GetName() != "X-B-000" || got[95].GetName() != "X-B-094" {
			t.Fatalf("%d headers from %v to %v", len(got), got[0].GetName(), got[len(got)-1].GetName())
		}
	}
}

func TestAStreamThatIsCompressedFlowsUnread(t *testing.T) {
	r := newRig(t)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte(strings.Replace(sseHead, "Transfer", "Content-Encoding: gzip\r\nTransfer", 1)))
		writeChunks(conn, []byte(claudeQuota), 1<<15, true)
	})
	if got := r.do(turn("s1")); got.body != claudeQuota || got.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("body %q, want the bytes as they came", got.body)
	}
	if got := r.events.of("passive"); len(got) != 1 || got[0].Reason != "unreadable_encoding" {
		t.Errorf("events %+v, want one that says so", got)
	}
}

func TestResponseHeadersPassUnchanged(t *testing.T) {
	declared := claudeProfile()
	declared.Headers.DropResponse = []string{"x-turn-state"}
	r := newRig(t)
	r.adapters.profiles["claude"] = compiled(t, "claude", declared)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nanthropic-ratelimit-unified-status: allowed\r\nX-Twice: 1\r\nX-Twice: 2\r\n" +
			"Set-Cookie: a=b\r\nX-Turn-State: minted\r\nKeep-Alive: timeout=5\r\nX-Listed: 1\r\nConnection: X-Listed\r\nContent-Length: 2\r\n\r\n{}"))
	})
	got := r.do(turn("s1"))
	got.header.Del("Date")
	want := http.Header{
		"Anthropic-Ratelimit-Unified-Status": {"allowed"}, "X-Twice": {"1", "2"}, "Content-Length": {"2"},
	}
	if fmt.Sprint(got.header) != fmt.Sprint(want) {
		t.Errorf("header %v, want %v", got.header, want)
	}
}

func TestABodyBeyondTheMemoryBudgetStreamsOnceAndMovesNowhere(t *testing.T) {
	r := newRig(t, withLimits(Limits{ReplayMemory: largePiece}))
	body := `{"model":"` + testModel + `","stream":true,"messages":["` + strings.Repeat("x", 3*largePiece) + `"]}`
	c := call{path: "/claude/v1/messages", session: "s1", body: body}
	wantServed(t, r.do(c))
	if all := r.upstream.Requests(); all[0].BodySHA256 != sha256Hex([]byte(body)) || all[0].Model != testModel {
		t.Error("the body did not go up as it came")
	}
	if got := r.events.of("passive"); len(got) == 0 || got[0].Reason != "replay_memory" {
		t.Errorf("events %+v, want one that says so", got)
	}
	if got := r.state.bound("claude/s1", testModel); got != "a" {
		t.Errorf("bound to %q, want a: the look at its beginning still works", got)
	}
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	if got := r.do(c); got.status != 429 || got.header.Get("X-Noria-Request") != "" || !r.state.blocked(claudeA) {
		t.Errorf("status %d, want the upstream's 429 and a blocker", got.status)
	}
	if err := r.proxy.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := r.proxy.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of memory are still taken", used)
	}
}

func TestAnEmptyStreamIsRepeatedOnceAndThenPassed(t *testing.T) {
	r := newRig(t)
	u := newRawUpstream(r, func(conn net.Conn, n int) {
		_, _ = conn.Write([]byte(sseHead))
		body := claudeStart + claudeDelta + claudeStop
		if n == 1 || n > 2 {
			body = ""
		}
		writeChunks(conn, []byte(body), 1<<15, true)
	})
	if got := r.do(turn("s1")); got.body != claudeStart+claudeDelta+claudeStop {
		t.Errorf("body %q, want that of the repeat", got.body)
	}
	if got := r.do(turn("s1")); got.status != 200 || got.body != "" || got.broken != nil {
		t.Errorf("status %d, body %q, want the empty answer as it came", got.status, got.body)
	}
	if n := u.count(); n != 4 {
		t.Errorf("%d requests upstream, want 4", n)
	}
	if got := r.state.bound("claude/s1", testModel); got != "a" {
		t.Errorf("bound to %q, want a", got)
	}
}

func TestAnEarlyEventRenewsTheLeaseAndGoesOnOnTheSameAccount(t *testing.T) {
	const expired = "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"token revoked\"}}\n\n"
	r := newRig(t)
	r.adapters.refresh = func(a quota.AccountID, refused wire.Lease) (wire.Lease, error) {
		return tokenLease(refused.BaseURL, a.Name, "2"), nil
	}
	u := newRawUpstream(r, func(conn net.Conn, n int) {
		_, _ = conn.Write([]byte(sseHead))
		if n == 1 {
			writeChunks(conn, []byte(claudeStart+expired), 1<<15, false)
			return
		}
		writeChunks(conn, []byte(claudeStart+claudeDelta+claudeStop), 1<<15, true)
	})
	wantServed(t, r.do(turn("s1")))
	if got := r.state.bound("claude/s1", testModel); got != "a" || u.count() != 2 || r.adapters.renewals != 1 {
		t.Errorf("bound to %q after %d requests and %d renewals, want a, 2, 1", got, u.count(), r.adapters.renewals)
	}
	if r.state.blocked(claudeA) {
		t.Error("the account was blocked")
	}
}

func TestAThrottleEarlyInAStreamIsWaitedForWhenItIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, func(conn net.Conn, n int) {
			if n > 1 {
				goodStream(conn, n)
				return
			}
			_, _ = conn.Write([]byte(sseHead))
			writeChunks(conn, []byte(claudeThrottle), 1<<15, true)
		})
		r.state.accounts = []quota.AccountID{claudeA}
		r.adapters.classify = func(_ context.Context, e *providerv1.ClassifyRequest) (Verdict, error) {
			v := judge(e)
			v.Rejection.RetryAfter = maxWait
			return v, nil
		}
		began := time.Now()
		wantServed(t, r.do(turn("s1")))
		if waited := time.Since(began); waited != maxWait {
			t.Errorf("waited for %v, want %v", waited, maxWait)
		}
		synctest.Wait()
		if used := r.proxy.memory.used.Load(); used != 0 {
			t.Errorf("%d bytes of memory are still taken", used)
		}
	})
}

func TestAClientThatLeavesWhileAnEventIsJudgedLeavesNothingBehind(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancel(t.Context())
	r.adapters.classify = func(ctx context.Context, _ *providerv1.ClassifyRequest) (Verdict, error) {
		leave()
		<-ctx.Done()
		return Verdict{}, ctx.Err()
	}
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte(sseHead))
		writeChunks(conn, []byte(claudeStart+claudeQuota+claudeDelta), 1<<15, true)
	})
	c := turn("s1")
	c.ctx = ctx
	if got := r.do(c); got.broken == nil {
		t.Errorf("status %d, want an error", got.status)
	}
	if got := r.events.wait(t.Context(), "request", 1); got[0].Outcome != "canceled" {
		t.Errorf("outcome %q, want canceled", got[0].Outcome)
	}
	if err := r.proxy.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := r.proxy.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of memory are still taken", used)
	}
}

func TestAThrottleEarlyInAStreamIsDetouredOrPassed(t *testing.T) {
	r := newRig(t)
	r.state.bind("codex/s1", "gpt-6.2-sol", codexA)
	r.state.accounts = []quota.AccountID{codexA}
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte(sseHead))
		writeChunks(conn, []byte(claudeThrottle+comment), 1<<15, true)
	})
	if got := r.do(codexTurn("s1")); got.status != 200 || got.body != claudeThrottle+comment || got.broken != nil {
		t.Errorf("status %d, body %q, want the stream as it came when there is no other account", got.status, got.body)
	}
	if _, cooled := r.state.cooled(codexA); !cooled {
		t.Error("the account has no cooldown")
	}
}
