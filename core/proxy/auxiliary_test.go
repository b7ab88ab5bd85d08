package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func gzipped(t *testing.T, s string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// count is a request of a session that is no turn.
func count(session string) call {
	return call{path: "/claude/v1/messages/count_tokens", session: session, body: `{"model":"` + testModel + `"}`}
}

func TestARefusalOfWhatIsNoTurnRenewsTheLeaseOnce(t *testing.T) {
	r := newRig(t)
	r.state.bind("claude/s1", testModel, claudeA)
	r.upstream.Script("a", upstream.Unauthorized())
	r.upstream.Script("renewed", upstream.OK())
	r.adapters.refresh = func(_ quota.AccountID, refused wire.Lease) (wire.Lease, error) {
		return tokenLease(refused.BaseURL, "renewed", "2"), nil
	}
	for range 2 {
		if got := r.do(count("s1")); got.status != 200 {
			t.Errorf("status %d: %s", got.status, got.body)
		}
	}
	if r.adapters.renewals != 1 || r.adapters.calls.Load() != 2 {
		t.Errorf("%d renewals and %d calls, want one question and one renewal", r.adapters.renewals, r.adapters.calls.Load())
	}
}

func TestADisabledAccountServesNothingThatIsNoTurnEither(t *testing.T) {
	r := newRig(t)
	r.state.bind("claude/s1", testModel, claudeA)
	r.state.disabled = map[quota.AccountID]bool{claudeA: true}
	if got := r.do(count("s1")); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	for _, request := range r.upstream.Requests() {
		if request.Token == "a" {
			t.Errorf("%s went to the disabled account", request.Path)
		}
	}
}

func TestWhatIsNoTurnIsAnsweredByUsWhenItCannotBeSent(t *testing.T) {
	tests := []struct {
		name  string
		setUp func(r *rig)
		words string
	}{
		{"no account", func(r *rig) { r.state.accounts = nil }, "no claude account"},
		{"signed out", func(r *rig) {
			r.adapters.refused[claudeA] = &LeaseRefusedError{Code: providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT}
		}, "cannot use the account claude/a"},
		{"the adapter is away", func(r *rig) { r.adapters.refused[claudeA] = ErrAdapterAway }, "adapter is not ready"},
		{"the network fails", func(r *rig) { r.upstream.Script("a", upstream.CutBeforeStatus()) }, "could not reach"},
		{"the upstream is no good address", func(r *rig) { r.adapters.bases[claudeA] = "http://upstream.example" }, "could not reach"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.setUp(r)
			wantOwn(t, r.do(count("s1")), 503, tt.words)
			if r.state.blocked(claudeA) {
				t.Error("the account was blocked")
			}
			if _, cooled := r.state.cooled(claudeA); cooled {
				t.Error("the account was cooled")
			}
		})
	}
}

func TestErrorsOfWhatIsNoTurnPassAsTheyCame(t *testing.T) {
	r := newRig(t)
	r.state.bind("claude/s1", testModel, claudeA)
	const answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nContent-Length: 4\r\n\r\nslow"
	u := newRawUpstream(r, func(conn net.Conn, _ int) { _, _ = conn.Write([]byte(answer)) })
	if got := r.do(count("s1")); got.status != 429 || got.body != "slow" || got.header.Get("Retry-After") != "1" || u.count() != 1 {
		t.Errorf("status %d, body %q after %d requests, want the upstream's answer", got.status, got.body, u.count())
	}
	if n := r.adapters.calls.Load(); n != 0 {
		t.Errorf("%d calls to the adapter, want 0", n)
	}
}

func TestAStateThatFailsIsSaidSo(t *testing.T) {
	r := newRig(t)
	r.proxy.state = failingState{r.state}
	wantOwn(t, r.do(turn("s1")), 503, "its state is not available")
	wantOwn(t, r.do(call{method: http.MethodGet, path: "/claude/v1/models"}), 503, "its state is not available")
}

type failingState struct{ *fakeState }

func (failingState) Place(placement.Request) (placement.Decision, error) {
	return placement.Decision{}, errors.New("closed")
}

func TestTheClientsOwnAccountIsNobodysElse(t *testing.T) {
	r := newRig(t)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nanthropic-ratelimit-unified-status: rejected\r\nContent-Length: 2\r\n\r\n{}"))
	})
	for path, observed := range map[string]int{"/claude/v1/models": 1, "/claude/v1/account/me": 0} {
		before := len(r.adapters.observations())
		got := r.do(call{method: http.MethodGet, path: path})
		if got.status != 200 || got.header.Get("Anthropic-Ratelimit-Unified-Status") != "rejected" {
			t.Errorf("%s: status %d, header %v, want them as they came", path, got.status, got.header)
		}
		if n := len(r.adapters.observations()) - before; n != observed {
			t.Errorf("%s: %d observations of an account, want %d", path, n, observed)
		}
	}
}

func TestTheTimeOfTheUpstreamIsNoOverhead(t *testing.T) {
	for _, c := range []call{turn("s1"), count("s1"), {method: http.MethodGet, path: "/claude/v1/account/me"}} {
		t.Run(c.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newBubbleRig(t, func(conn net.Conn, n int) {
					time.Sleep(3 * time.Second)
					goodStream(conn, n)
				})
				if got := r.do(c); got.status != 200 {
					t.Errorf("status %d: %s", got.status, got.body)
				}
				e := r.events.wait(t.Context(), "request", 1)[0]
				if e.FirstByte != 3*time.Second || e.Overhead != 0 {
					t.Errorf("first byte after %v with an overhead of %v, want 3s and none", e.FirstByte, e.Overhead)
				}
			})
		})
	}
}

func TestWhoWaitsForAnothersJudgementMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, func(conn net.Conn, _ int) {
			_, _ = conn.Write([]byte("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"))
		})
		answer := make(chan struct{})
		r.adapters.classify = func(_ context.Context, e *providerv1.ClassifyRequest) (Verdict, error) {
			<-answer
			return judge(e), nil
		}
		asks := r.serveTo(newWitness(), count("s1"))
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		waiting := count("s1")
		waiting.ctx = ctx
		waits := r.serveTo(newWitness(), waiting)
		synctest.Wait()
		leave()
		<-waits
		if got := r.events.of("request"); len(got) != 1 || got[0].Outcome != "canceled" {
			t.Errorf("events %+v, want the one who left", got)
		}
		close(answer)
		<-asks
		if n := len(r.adapters.evidence()); n != 1 {
			t.Errorf("%d questions, want 1", n)
		}
	})
}
