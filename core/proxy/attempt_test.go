package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

var resets = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestAHealthyTurnIsBoundAndAsksNoAdapter(t *testing.T) {
	r := newRig(t)
	for range 3 {
		wantServed(t, r.do(turn("s1")))
	}
	if got := r.state.bound("claude/s1", testModel); got != "a" {
		t.Errorf("bound to %q, want a", got)
	}
	if n := r.adapters.calls.Load(); n != 0 {
		t.Errorf("%d calls to the adapter on a healthy request's path, want 0", n)
	}
	if r.state.writes != 1 {
		t.Errorf("%d durable writes for three turns of one session, want the binding only", r.state.writes)
	}
	if got := r.state.ended; got["completed"] != 3 || len(got) != 1 {
		t.Errorf("attempts ended %v, want 3 completed", got)
	}
	if got := r.events.of("bound"); len(got) != 1 || got[0].Account != "a" || strings.Contains(got[0].SessionHash, "s1") {
		t.Errorf("events of binding: %+v", got)
	}
}

func TestReactionsToFailuresBeforeCommit(t *testing.T) {
	tests := []struct {
		name string
		// bound to a before.
		bound  bool
		script map[string][]upstream.Behaviour
		// turns that reach upstream, by account.
		turns  string
		status int
		// boundTo afterwards; blocked and cooled say what a got.
		boundTo         string
		blocked, cooled bool
		own             bool
	}{
		{name: "a quota rejection moves the session and blocks the account", bound: true,
			script: scripts("a", upstream.Quota("five_hour", resets)),
			turns:  "a b", status: 200, boundTo: "b", blocked: true},
		{name: "a quota error early in a stream moves the session, unseen", bound: true,
			script: scripts("a", upstream.EarlyError(resets)),
			turns:  "a b", status: 200, boundTo: "b", blocked: true},
		{name: "two accounts without quota are passed over", bound: false,
			script: scripts("a", upstream.Quota("five_hour", resets), "b", upstream.EarlyError(resets)),
			turns:  "a b c", status: 200, boundTo: "c", blocked: true},
		{name: "every account without quota is an answer of our own", bound: true,
			script: scripts("a", upstream.Quota("five_hour", resets), "b", upstream.Quota("five_hour", resets), "c", upstream.EarlyError(resets)),
			turns:  "a b c", status: 429, boundTo: "a", blocked: true, own: true},
		{name: "a throttled account is detoured, its binding stays", bound: true,
			script: scripts("a", upstream.Throttled(30*time.Second)),
			turns:  "a b", status: 200, boundTo: "a", cooled: true},
		{name: "a new session goes to the next account when the first is throttled, and stays there", bound: false,
			script: scripts("a", upstream.Throttled(30*time.Second)),
			turns:  "a b", status: 200, boundTo: "b", cooled: true},
		{name: "a throttle of every account passes when its pause is long", bound: true,
			script: scripts("a", upstream.Throttled(30*time.Second), "b", upstream.Throttled(30*time.Second), "c", upstream.Throttled(30*time.Second)),
			turns:  "a b c", status: 429, boundTo: "a", cooled: true},
		{name: "a throttle without a hint is every account's and passes", bound: true,
			script: scripts("a", upstream.Throttled(0)),
			turns:  "a", status: 429, boundTo: "a"},
		{name: "an overloaded provider passes and moves nothing", bound: true,
			script: scripts("a", upstream.Overloaded()),
			turns:  "a", status: 529, boundTo: "a"},
		{name: "a plain 503 passes", bound: true,
			script: scripts("a", upstream.Unavailable()),
			turns:  "a", status: 503, boundTo: "a"},
		{name: "a 401 renews the lease once and goes on on the same account", bound: true,
			script: scripts("a", upstream.Unauthorized(), upstream.OK()),
			turns:  "a a", status: 200, boundTo: "a"},
		{name: "a 401 after the renewal blocks and moves", bound: true,
			script: scripts("a", upstream.Unauthorized()),
			turns:  "a a b", status: 200, boundTo: "b", blocked: true},
		{name: "a revoked login moves", bound: true,
			script: scripts("a", upstream.Forbidden()),
			turns:  "a a b", status: 200, boundTo: "b", blocked: true},
		{name: "a cut before the status leaves a bound session where it is", bound: true,
			script: scripts("a", upstream.CutBeforeStatus()),
			turns:  "a", status: 503, boundTo: "a", cooled: true, own: true},
		{name: "a cut before the status lets a new session try another account", bound: false,
			script: scripts("a", upstream.CutBeforeStatus()),
			turns:  "a b", status: 200, boundTo: "b", cooled: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.adapters.refresh = func(a quota.AccountID, refused wire.Lease) (wire.Lease, error) {
				return tokenLease(refused.BaseURL, a.Name, refused.Generation+"1"), nil
			}
			if tt.bound {
				r.state.bind("claude/s1", testModel, claudeA)
			}
			for token, script := range tt.script {
				r.upstream.Script(token, script...)
			}
			got := r.do(turn("s1"))
			switch {
			case tt.own:
				wantOwn(t, got, tt.status)
			case tt.status == 200:
				wantServed(t, got)
			case got.status != tt.status || got.header.Get("X-Noria-Request") != "":
				t.Errorf("status %d, want the upstream's %d as it came: %s", got.status, tt.status, got.body)
			}
			if turns := r.accountsOf(); turns != tt.turns {
				t.Errorf("turns reached accounts %q, want %q", turns, tt.turns)
			}
			if b := r.state.bound("claude/s1", testModel); b != tt.boundTo {
				t.Errorf("bound to %q, want %q", b, tt.boundTo)
			}
			if got := r.state.blocked(claudeA); got != tt.blocked {
				t.Errorf("account a blocked: %v, want %v", got, tt.blocked)
			}
			if _, got := r.state.cooled(claudeA); got != tt.cooled {
				t.Errorf("account a cooled: %v, want %v", got, tt.cooled)
			}
		})
	}
}

// scripts reads token, behaviours, token, behaviours.
func scripts(args ...any) map[string][]upstream.Behaviour {
	out := map[string][]upstream.Behaviour{}
	var token string
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			token = arg
		case upstream.Behaviour:
			out[token] = append(out[token], arg)
		}
	}
	return out
}

func TestTheSessionStaysAfterTheOldAccountRecovered(t *testing.T) {
	r := newRig(t)
	r.upstream.Script("a", upstream.Quota("five_hour", resets), upstream.OK())
	wantServed(t, r.do(turn("s1")))
	r.state.mu.Lock()
	clear(r.state.blockers)
	r.state.mu.Unlock()
	wantServed(t, r.do(turn("s1")))
	if got := r.accountsOf(); got != "a b b" {
		t.Errorf("turns reached %q, want a b b", got)
	}
}

func TestOneShortWaitForAThrottledAccountWhenThereIsNoOther(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pause time.Duration
		// throttles before the account serves again.
		throttles int
		waited    time.Duration
		requests  int
		served    bool
	}{
		{"one that is over then", maxWait, 1, maxWait, 2, true},
		{"one that is not", 1500 * time.Millisecond, 2, 1500 * time.Millisecond, 2, false},
		{"one that is too long", maxWait + 1, 1, 0, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, u := newBubbleRig(t, func(conn net.Conn, n int) {
					if n > tt.throttles {
						goodStream(conn, n)
						return
					}
					fmt.Fprintf(conn, "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: %.3f\r\nContent-Length: 2\r\n\r\n{}", tt.pause.Seconds())
				})
				r.state.accounts = []quota.AccountID{claudeA}
				r.adapters.classify = func(_ context.Context, e *providerv1.ClassifyRequest) (Verdict, error) {
					v := judge(e)
					v.Rejection.RetryAfter = tt.pause
					return v, nil
				}
				began := time.Now()
				got := r.do(turn("s1"))
				if waited := time.Since(began); waited != tt.waited || u.count() != tt.requests {
					t.Errorf("waited for %v and sent %d requests, want %v and %d", waited, u.count(), tt.waited, tt.requests)
				}
				if tt.served {
					wantServed(t, got)
				} else if got.status != 429 || got.body != "{}" {
					t.Errorf("status %d, want the throttle as it came", got.status)
				}
			})
		})
	}
}

func TestOwnAnswersTellCountsAndTime(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) { o.Clock = r.clock })
	at := r.clock.Now().Add(2*time.Hour + 10*time.Minute)
	r.state.blockers[claudeA] = []quota.Rejection{{Cause: quota.CauseQuota, ClearsAt: at}}
	r.state.blockers[claudeB] = []quota.Rejection{{Cause: quota.CauseQuota, ClearsAt: at.Add(time.Hour)}}
	r.state.blockers[claudeC] = []quota.Rejection{{Cause: quota.CauseAuth, ClearsAt: at.Add(time.Hour)}}
	got := r.do(turn("s1"))
	wantOwn(t, got, 429, "None of your 3 claude accounts can serve this request: 2 have used up their quota, 1 is signed out.",
		"The next one is free at 05:10 UTC, in 2 h 10 min.")
	if reset := got.header.Get("anthropic-ratelimit-unified-reset"); reset != strconv.FormatInt(at.Unix(), 10) {
		t.Errorf("reset %q, want %d", reset, at.Unix())
	}
	asked := r.adapters.asked
	if len(asked) != 1 || !asked[0].GetStreaming() || asked[0].GetModel() != testModel || len(asked[0].GetCauses()) != 2 || asked[0].GetGoverningWindow() != "five_hour" {
		t.Errorf("the adapter was asked %v", asked)
	}
	if turns := r.accountsOf(); turns != "" {
		t.Errorf("turns reached %q, want none", turns)
	}
}

func TestOwnAnswersTakeTheShapeOfTheAdapterWhenItHasOne(t *testing.T) {
	tests := []struct {
		name   string
		answer *providerv1.Answer
		status int
		body   string
	}{
		{"a good shape is used as it is", &providerv1.Answer{Status: 418, Body: []byte(`{{sentence}}`)}, 418, "{{sentence}}"},
		{"a status that is none falls back to the template", &providerv1.Answer{Status: 99}, 503, "noria connect"},
		{"a header of the connection falls back to the template", &providerv1.Answer{Status: 429, Headers: []*providerv1.Header{{Name: "Transfer-Encoding", Value: "x"}}}, 503, "noria connect"},
		{"an injected header falls back to the template", &providerv1.Answer{Status: 429, Headers: []*providerv1.Header{{Name: "X-A", Value: "b\r\nX-C: d"}}}, 503, "noria connect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.state.accounts = []quota.AccountID{claudeA}
			r.state.blockers[claudeA] = []quota.Rejection{{Cause: quota.CauseAuth}}
			r.adapters.shape = func(*providerv1.UnavailableRequest) (*providerv1.Answer, error) { return tt.answer, nil }
			wantOwn(t, r.do(turn("s1")), tt.status, tt.body)
		})
	}
}

func TestA401OrA403OfAnAccountNeverReachesTheClient(t *testing.T) {
	for _, behaviour := range []upstream.Behaviour{upstream.Unauthorized(), upstream.Forbidden()} {
		for _, verdict := range []struct {
			name string
			v    Verdict
			err  error
		}{
			{"unjudged", Verdict{}, errNoAnswer},
			{"unknown", Verdict{Outcome: providerv1.Outcome_OUTCOME_UNKNOWN_ERROR}, nil},
			{"of the client", Verdict{Outcome: providerv1.Outcome_OUTCOME_CLIENT_ERROR}, nil},
			{"of no scope", Verdict{Outcome: providerv1.Outcome_OUTCOME_AUTH_FAILED}, nil},
		} {
			t.Run(verdict.name, func(t *testing.T) {
				r := newRig(t)
				r.state.bind("claude/s1", testModel, claudeA)
				r.upstream.Script("a", behaviour)
				r.adapters.classify = func(context.Context, *providerv1.ClassifyRequest) (Verdict, error) { return verdict.v, verdict.err }
				wantOwn(t, r.do(turn("s1")), 503, "refused the account a")
				if r.state.blocked(claudeA) {
					t.Error("the account was blocked without a verdict against it")
				}
				if got := r.state.bound("claude/s1", testModel); got != "a" {
					t.Errorf("bound to %q, want a", got)
				}
			})
		}
	}
}

func TestUnjudgedErrorsPassAsTheyCame(t *testing.T) {
	r := newRig(t)
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.adapters.classify = func(context.Context, *providerv1.ClassifyRequest) (Verdict, error) { return Verdict{}, errNoAnswer }
	got := r.do(turn("s1"))
	if got.status != 429 || got.header.Get("anthropic-ratelimit-unified-status") != "rejected" || !strings.Contains(got.body, "exceed your account's rate limit") {
		t.Errorf("status %d, body %q, want the upstream's 429 as it came", got.status, got.body)
	}
	if r.state.blocked(claudeA) {
		t.Error("the account was blocked without a verdict")
	}
}

func TestAnAccountWithoutLeaseIsPassedOver(t *testing.T) {
	tests := []struct {
		code   providerv1.RefusalCode
		blocks bool
	}{
		{providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, true},
		{providerv1.RefusalCode_REFUSAL_CODE_EXPIRED, true},
		{providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE, true},
		{providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, false},
		{providerv1.RefusalCode_REFUSAL_CODE_UNSPECIFIED, false},
	}
	for _, tt := range tests {
		t.Run(tt.code.String(), func(t *testing.T) {
			r := newRig(t)
			r.adapters.refused[claudeA] = &LeaseRefusedError{Code: tt.code, Reason: "sign in"}
			wantServed(t, r.do(turn("s1")))
			if got := r.accountsOf(); got != "b" {
				t.Errorf("turns reached %q, want b", got)
			}
			if got := r.state.blocked(claudeA); got != tt.blocks {
				t.Errorf("blocked %v, want %v", got, tt.blocks)
			}
			if pause, cooled := r.state.cooled(claudeA); cooled == tt.blocks || cooled && pause.Cause != quota.CauseCredential {
				t.Errorf("pause %+v, want one for the want of a credential: %v", pause, !tt.blocks)
			}
		})
	}
}

func TestAnAdapterThatIsAwayIsSaidSo(t *testing.T) {
	r := newRig(t)
	r.adapters.refused[claudeA] = ErrAdapterAway
	wantOwn(t, r.do(turn("s1")), 503, "the claude adapter is not ready")
	if got := r.accountsOf(); got != "" {
		t.Errorf("turns reached %q, want none", got)
	}
}

func TestTheBoundOfAttemptsIsSaidWhenItEndedTheSearch(t *testing.T) {
	r := newRig(t, withLimits(Limits{Attempts: 2}))
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.upstream.Script("b", upstream.Quota("five_hour", resets))
	wantOwn(t, r.do(turn("s1")), 503, "stopped after 2 attempts")
	if got := r.accountsOf(); got != "a b" {
		t.Errorf("turns reached %q, want a b", got)
	}
}

func TestNoAttemptBeginsAfterTheTimeOfTheSearch(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) { o.Clock = r.clock })
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.adapters.classify = func(_ context.Context, e *providerv1.ClassifyRequest) (Verdict, error) {
		r.clock.Advance(31 * time.Second)
		return judge(e), nil
	}
	wantOwn(t, r.do(turn("s1")), 503, "stopped after 1 attempt ")
}

func TestARouteThatIsNotRetryableKeepsItsBlockerAndItsAnswer(t *testing.T) {
	r := newRig(t)
	declared := claudeProfile()
	declared.Routes[0].Retryable = false
	r.adapters.profiles["claude"] = compiled(t, "claude", declared)
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	if got := r.do(turn("s1")); got.status != 429 || got.header.Get("X-Noria-Request") != "" {
		t.Errorf("status %d, want the upstream's 429", got.status)
	}
	if !r.state.blocked(claudeA) {
		t.Error("the account is not blocked")
	}
}

func TestAClientThatLeavesCancelsItsRequestAndIsNobodysFault(t *testing.T) {
	for _, tt := range []struct {
		name      string
		behaviour upstream.Behaviour
		sawStatus int
		completed int
	}{
		{"before the answer", upstream.OK().After(make(chan struct{})), 0, 0},
		{"in the middle of the answer", upstream.OK().HaltUntil(make(chan struct{})), 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.upstream.Script("a", tt.behaviour)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			c := turn("s1")
			c.ctx = ctx
			var client sync.WaitGroup
			client.Go(func() {
				resp, err := r.client.Do(r.request(c))
				if err != nil {
					return
				}
				defer resp.Body.Close()
				buffer := make([]byte, 4096)
				for err == nil {
					if _, err = resp.Body.Read(buffer); strings.Contains(string(buffer), "delta") {
						leave()
					}
				}
			})
			if tt.sawStatus == 0 {
				r.upstream.Wait(t.Context().Done(), func(all []upstream.Request) bool { return len(all) == 1 && all[0].BodyBytes > 0 })
				leave()
			}
			r.upstream.Wait(t.Context().Done(), func(all []upstream.Request) bool { return len(all) == 1 && all[0].Left })
			client.Wait()
			r.events.wait(t.Context(), "request", 1)
			if got := r.accountsOf(); got != "a" {
				t.Errorf("turns reached %q, want a only", got)
			}
			if _, cooled := r.state.cooled(claudeA); cooled || r.state.blocked(claudeA) {
				t.Error("the account was blamed")
			}
			if got := r.state.ended["completed"]; got != tt.completed {
				t.Errorf("%d attempts completed, want %d", got, tt.completed)
			}
		})
	}
}

func TestParallelFirstRequestsOfASessionEndOnOneAccount(t *testing.T) {
	r := newRig(t)
	ready := make(chan struct{})
	for _, token := range []string{"a", "b", "c"} {
		r.upstream.Script(token, upstream.OK().After(ready))
	}
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { wantServed(t, r.do(turn("s1"))) })
	}
	r.upstream.Wait(t.Context().Done(), func(all []upstream.Request) bool { return len(all) == 8 })
	close(ready)
	clients.Wait()
	if got := strings.ReplaceAll(r.accountsOf(), " ", ""); strings.Trim(got, got[:1]) != "" {
		t.Errorf("turns reached %q, want one account", got)
	}
}

func TestEverySessionlessTurnIsPlacedAloneAndBindsNothing(t *testing.T) {
	r := newRig(t)
	wantServed(t, r.do(turn("")))
	if len(r.state.bindings) != 0 || r.state.writes != 0 {
		t.Errorf("bindings %v, %d writes, want none", r.state.bindings, r.state.writes)
	}
}

func TestAThreadTitleIsPlacedAndBindsNothing(t *testing.T) {
	r := newRig(t)
	c := codexTurn("title-1")
	c.header = http.Header{"X-Codex-Turn-Metadata": {`{"session_id":"title-1","thread_source":"thread_title"}`}}
	if got := r.do(c); got.status != 200 {
		t.Fatalf("status %d", got.status)
	}
	if got := r.state.bound("codex/title-1", "gpt-6.2-sol"); got != "" {
		t.Errorf("bound to %q, want no binding", got)
	}
	if got := r.events.of("request"); len(got) != 1 || got[0].RouteKind != providerv1.RouteKind_ROUTE_KIND_PLACED {
		t.Errorf("events %+v, want one of a placed request", got)
	}
}

func TestABlockerIsDurableBeforeTheFailover(t *testing.T) {
	r := newRig(t)
	r.state.bind("claude/s1", testModel, claudeA)
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.state.durable = func(_ context.Context, sequence uint64) error {
		r.state.mu.Lock()
		defer r.state.mu.Unlock()
		if last := r.state.journal[sequence-1]; strings.HasPrefix(last, "block") && r.accountsOf() != "a" {
			t.Errorf("another account was asked (%s) before %q was durable", r.accountsOf(), last)
		}
		return nil
	}
	wantServed(t, r.do(turn("s1")))
}

// TestEveryTryThatFailedIsToldOnce goes through the ways on which an attempt fails: the metric of attempts counts these
// events.
func TestEveryTryThatFailedIsToldOnce(t *testing.T) {
	refused := func(code providerv1.RefusalCode) error { return &LeaseRefusedError{Code: code} }
	renewed := func(a quota.AccountID, refused wire.Lease) (wire.Lease, error) {
		return tokenLease(refused.BaseURL, a.Name, refused.Generation+"1"), nil
	}
	tests := []struct {
		name  string
		setUp func(r *rig)
		// want is the account, status, outcome and reason of each.
		want []string
	}{
		{"none when all is well", func(*rig) {}, nil},
		{"a failover", func(r *rig) {
			r.upstream.Script("a", upstream.Quota("five_hour", resets))
		}, []string{"a 429 quota_exhausted usage_limit_reached"}},
		{"a failover from early in a stream", func(r *rig) {
			r.upstream.Script("a", upstream.EarlyError(resets))
		}, []string{"a 200 quota_exhausted usage_limit_reached"}},
		{"a detour", func(r *rig) {
			r.upstream.Script("a", upstream.Throttled(30*time.Second))
		}, []string{"a 429 throttled rate_limited"}},
		{"a throttle that nobody else takes over", func(r *rig) {
			r.state.accounts = []quota.AccountID{claudeA}
			r.upstream.Script("a", upstream.Throttled(30*time.Second))
		}, []string{"a 429 throttled rate_limited"}},
		{"an answer that passes", func(r *rig) {
			r.upstream.Script("a", upstream.Overloaded())
		}, []string{"a 529 overloaded "}},
		{"an answer that nobody judged", func(r *rig) {
			r.upstream.Script("a", upstream.Overloaded())
			r.adapters.classify = func(context.Context, *providerv1.ClassifyRequest) (Verdict, error) { return Verdict{}, errNoAnswer }
		}, []string{"a 529 unjudged unjudged"}},
		{"a renewed lease", func(r *rig) {
			r.adapters.refresh = renewed
			r.upstream.Script("a", upstream.Unauthorized(), upstream.OK())
		}, []string{"a 401 auth_failed token_expired"}},
		{"a renewed lease that is refused again", func(r *rig) {
			r.adapters.refresh = renewed
			r.upstream.Script("a", upstream.Unauthorized())
		}, []string{"a 401 auth_failed token_expired", "a 401 auth_failed token_expired"}},
		{"a lease that cannot be renewed", func(r *rig) {
			r.upstream.Script("a", upstream.Unauthorized())
		}, []string{"a 401 auth_failed expired"}},
		{"a renewal that does not come", func(r *rig) {
			r.upstream.Script("a", upstream.Unauthorized())
			r.adapters.refresh = func(quota.AccountID, wire.Lease) (wire.Lease, error) {
				return wire.Lease{}, refused(providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY)
			}
		}, []string{"a 401 unavailable credential"}},
		{"an adapter that went away before the renewal", func(r *rig) {
			r.upstream.Script("a", upstream.Unauthorized())
			r.adapters.refresh = func(quota.AccountID, wire.Lease) (wire.Lease, error) { return wire.Lease{}, ErrAdapterAway }
		}, []string{"a 401 auth_failed token_expired"}},
		{"no lease", func(r *rig) {
			r.refuse(claudeA, refused(providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT))
		}, []string{"a 0 auth_failed signed_out"}},
		{"the network", func(r *rig) {
			r.upstream.Script("a", upstream.CutBeforeStatus())
		}, []string{"a 0 network network"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.setUp(r)
			r.do(turn("s1"))
			r.events.wait(t.Context(), "request", 1)
			var got []string
			for _, e := range r.events.of("attempt") {
				got = append(got, fmt.Sprintf("%s %d %s %s", e.Account, e.Status, e.Outcome, e.Reason))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestAJudgementDatesFromTheRequestAndNotFromItsAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"an answer":          "HTTP/1.1 529 Overloaded\r\nContent-Length: 2\r\n\r\n{}",
		"an event":           sseHead + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(claudeBusy), claudeBusy),
		"an event of a turn": sseHead + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(claudeDelta+claudeBusy), claudeDelta+claudeBusy),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newBubbleRig(t, func(conn net.Conn, _ int) {
					time.Sleep(7 * time.Second)
					_, _ = conn.Write([]byte(answer))
				})
				sent := time.Now()
				r.do(turn("s1"))
				if len(r.adapters.evidence()) != 1 || !r.adapters.sentAt.Equal(sent) {
					t.Errorf("sent at %v, want %v", r.adapters.sentAt, sent)
				}
			})
		})
	}
}
