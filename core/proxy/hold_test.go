package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// paced serves one stream whose parts are written when the test says so.
type paced struct{ parts chan string }

func newPaced() *paced { return &paced{parts: make(chan string)} }

func (p *paced) serve(conn net.Conn, _ int) {
	_, _ = conn.Write([]byte(sseHead))
	for part := range p.parts {
		writeChunks(conn, []byte(part), 1<<15, false)
	}
	_, _ = conn.Write([]byte("0\r\n\r\n"))
}

func TestNothingIsSentBeforeTheFirstEventThatCannotBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		r, _ := newBubbleRig(t, p.serve)
		w := newWitness()
		r.state.durable = func(context.Context, uint64) error {
			w.saw("durable")
			return nil
		}
		served := r.serveTo(w, turn("s1"))
		for _, part := range []string{claudeStart, comment, claudePing, claudeDelta[:40]} {
			p.parts <- part
			synctest.Wait()
			if got := w.order(); len(got) > 0 {
				t.Errorf("%q behind %q, want nothing", got, part)
			}
			if got := r.state.bound("claude/s1", testModel); got != "" {
				t.Errorf("bound to %q behind %q", got, part)
			}
		}
		p.parts <- claudeDelta[40:]
		synctest.Wait()
		if got := w.order(); !slices.Equal(got, []string{"durable", "header 200", "byte", "flush"}) {
			t.Errorf("%q, want the binding, the header and the body in this order", got)
		}
		p.parts <- claudeStop
		close(p.parts)
		if cut := <-served; cut {
			t.Error("the connection was cut")
		}
		if got, want := w.body(), claudeStart+comment+claudePing+claudeDelta+claudeStop; got != want {
			t.Errorf("body %q, want all bytes in order", got)
		}
	})
}

func TestABindingIsDurableBeforeTheFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, goodStream)
		w := newWitness()
		release := make(chan struct{})
		r.state.durable = func(context.Context, uint64) error {
			w.saw("asked")
			<-release
			w.saw("durable")
			return nil
		}
		served := r.serveTo(w, turn("s1"))
		synctest.Wait()
		if got := w.order(); !slices.Equal(got, []string{"asked"}) {
			t.Errorf("%q before the binding was durable", got)
		}
		close(release)
		<-served
		if got := w.order(); !slices.Equal(got[:4], []string{"asked", "durable", "header 200", "byte"}) {
			t.Errorf("%q, want the binding, the header and the body in this order", got)
		}
	})
}

func TestAClientThatLeavesWhileItsBindingIsWrittenGetsNothing(t *testing.T) {
	r := newRig(t)
	ctx, leave := context.WithCancel(t.Context())
	r.state.durable = func(ctx context.Context, _ uint64) error {
		leave()
		<-ctx.Done()
		return ctx.Err()
	}
	c := turn("s1")
	c.ctx = ctx
	if got := r.do(c); got.broken == nil {
		t.Errorf("status %d, want an error", got.status)
	}
	if got := r.events.wait(t.Context(), "request", 1); got[0].Outcome != "canceled" {
		t.Errorf("outcome %q, want canceled", got[0].Outcome)
	}
}

func TestTheHoldIsBounded(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		first  string
		reason string
	}{
		{"by bytes", Limits{HoldBytes: 100}, claudeStart + ": " + strings.Repeat("x", 200), "hold_bytes"},
		{"by time", Limits{}, claudeStart, "hold_time"},
		{"by time with nothing at all", Limits{}, "", "hold_time"},
		{"by the memory of all requests", Limits{ReplayMemory: smallPiece + 20}, claudeStart, "replay_memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPaced()
				r, _ := newBubbleRig(t, p.serve, withLimits(tt.limits))
				began := time.Now()
				finish := make(chan struct{})
				go func() {
					defer close(p.parts)
					if tt.first != "" {
						p.parts <- tt.first
					}
					<-finish
					p.parts <- "\n\n" + claudeDelta + claudeStop
				}()
				resp, body := r.openStream(turn("s1"))
				if got := r.state.bound("claude/s1", testModel); resp.StatusCode != 200 || got != "a" {
					t.Errorf("status %d, bound to %q, want a committed and bound stream", resp.StatusCode, got)
				}
				if held := time.Since(began); tt.reason == "hold_time" && held != DefaultLimits().HoldTime {
					t.Errorf("held for %v", held)
				}
				close(finish)
				all, err := io.ReadAll(body)
				if want := tt.first + "\n\n" + claudeDelta + claudeStop; err != nil || string(all) != want {
					t.Errorf("body %q, %v, want %q", all, err, want)
				}
				if got := r.events.of("passive"); len(got) != 1 || got[0].Reason != tt.reason {
					t.Errorf("events %+v, want one of %s", got, tt.reason)
				}
				synctest.Wait()
				if used := r.proxy.memory.used.Load(); used != 0 {
					t.Errorf("%d bytes of memory are still taken", used)
				}
			})
		})
	}
}

func TestTheEndOfTheHoldWaitsForAnEventThatIsBeingJudged(t *testing.T) {
	limits := Limits{HoldTime: time.Second}
	for _, tt := range []struct {
		name  string
		event string
		// alone: there is no other account.
		alone  bool
		served string
	}{
		{"one that moves the request", claudeQuota, false, "b"},
		{"a throttle that another account takes over", claudeThrottle, false, "b"},
		{"a throttle that nobody takes over", claudeThrottle, true, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newBubbleRig(t, func(conn net.Conn, n int) {
					if n > 1 {
						goodStream(conn, n)
						return
					}
					_, _ = conn.Write([]byte(sseHead))
					writeChunks(conn, []byte(tt.event), 1<<15, true)
				}, withLimits(limits))
				if tt.alone {
					r.state.accounts = []quota.AccountID{claudeA}
				}
				r.adapters.classify = func(_ context.Context, e *providerv1.ClassifyRequest) (Verdict, error) {
					time.Sleep(2 * limits.HoldTime)
					return judge(e), nil
				}
				got := r.do(turn("s1"))
				if tt.served == "b" {
					wantServed(t, got)
				} else if got.status != 200 || got.body != tt.event {
					t.Errorf("status %d, body %q, want the throttle as it came", got.status, got.body)
				}
				if got := r.events.of("passive"); len(got) != 0 {
					t.Errorf("events %+v, want no commit by time", got)
				}
			})
		})
	}
}

func TestAPanicAtTheEndOfTheHoldStaysWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		r, u := newBubbleRig(t, p.serve)
		r.proxy.state = panickingState{r.state}
		go func() { p.parts <- claudeStart }()
		if got := r.do(turn("s1")); got.broken == nil {
			t.Errorf("status %d, want a cut connection", got.status)
		}
		close(p.parts)
		if got := r.do(call{method: "GET", path: "/healthz"}); got.status != 200 {
			t.Errorf("healthz afterwards: status %d", got.status)
		}
		if n := u.count(); n != 1 {
			t.Errorf("%d requests upstream, want 1", n)
		}
	})
}

// panickingState panics when it is told of an acceptance.
type panickingState struct{ *fakeState }

func (panickingState) Accept(uint64, time.Time) (placement.Acceptance, error) { panic("a secret") }

func TestAPanicWhileTheUpstreamIsReadStaysWithItsRequest(t *testing.T) {
	from := newPiecePool().read(panickingBody{})
	defer from.close()
	defer func() {
		if recover() == nil {
			t.Error("the panic did not reach who reads")
		}
	}()
	_, _ = from.nextBefore(nil)
}

type panickingBody struct{}

func (panickingBody) Read([]byte) (int, error) { panic("a secret") }
func (panickingBody) Close() error             { return nil }

func TestAStreamThatIsGivenUpBehindTheCommitIsCutAndNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		defer close(p.parts)
		r, _ := newBubbleRig(t, p.serve)
		ctx, giveUp := context.WithCancel(t.Context())
		c := turn("s1")
		c.ctx = ctx
		served := r.serveTo(newWitness(), c)
		p.parts <- claudeStart + claudeDelta
		synctest.Wait()
		giveUp()
		if cut := <-served; !cut {
			t.Error("the answer ended as if it were whole")
		}
		if got := r.events.of("request"); len(got) != 1 || got[0].Outcome != "canceled" {
			t.Errorf("events %+v, want a canceled request", got)
		}
	})
}

// TestTheCommitBoundary says for sequences of events what the client sees and what is kept.
func TestTheCommitBoundary(t *testing.T) {
	tests := []struct {
		name string
		// events of account a; b gives a good answer.
		events  string
		served  string
		boundTo string
		blocked bool
		judged  int
	}{
		{"a good stream", claudeStart + claudeDelta + claudeStop, "a", "a", false, 0},
		{"an end behind the preamble is output", claudeStart + claudeStop, "a", "a", false, 0},
		{"a quota error first", claudeQuota, "b", "b", true, 1},
		{"a quota error behind preamble", claudeStart + claudePing + comment + claudeQuota, "b", "b", true, 1},
		{"a quota error behind output", claudeStart + claudeDelta + claudeQuota, "a", "a", true, 1},
		{"an overload first passes and binds nothing", claudeBusy, "a", "", false, 1},
		{"an overload behind preamble passes and binds nothing", claudeStart + claudeBusy, "a", "", false, 1},
		{"output behind an overload binds", claudeBusy + claudeDelta + claudeStop, "a", "a", false, 1},
		{"preamble alone binds nothing", claudeStart + claudePing, "a", "", false, 0},
		{"comments alone bind nothing", comment, "a", "", false, 0},
		{"an unknown event is output", "event: novelty\ndata: {}\n\n", "a", "a", false, 0},
		{"an error event by name only", "event: error\ndata: usage limit\n\n", "b", "b", true, 1},
		{"the type in the data wins over the name", "event: error\ndata: {\"type\":\"content_block_delta\",\"text\":\"rate_limit_error\"}\n\n", "a", "a", false, 0},
		{"a type deep in the data is none", "event: x\ndata: {\"delta\":{\"type\":\"error\"}}\n\n", "a", "a", false, 0},
		{"an error at the end without a blank line is no event", claudeStart + strings.TrimRight(claudeQuota, "\n"), "a", "", false, 0},
		{"carriage returns end lines too", strings.ReplaceAll(claudeStart+claudeQuota, "\n", "\r"), "b", "b", true, 1},
		{"both together end lines too", strings.ReplaceAll(claudeStart+claudeQuota, "\n", "\r\n"), "b", "b", true, 1},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 1 << 15} {
			t.Run(fmt.Sprintf("%s in pieces of %d", tt.name, size), func(t *testing.T) {
				r := newRig(t)
				good := claudeStart + claudeDelta + claudeStop
				newRawUpstream(r, func(conn net.Conn, n int) {
					_, _ = conn.Write([]byte(sseHead))
					if n == 1 {
						writeChunks(conn, []byte(tt.events), size, true)
						return
					}
					writeChunks(conn, []byte(good), size, true)
				})
				got := r.do(turn("s1"))
				want := tt.events
				if tt.served == "b" {
					want = good
				}
				if got.status != 200 || got.broken != nil || got.body != want {
					t.Errorf("status %d, broken %v, body %q, want %q", got.status, got.broken, got.body, want)
				}
				if got := r.state.bound("claude/s1", testModel); got != tt.boundTo {
					t.Errorf("bound to %q, want %q", got, tt.boundTo)
				}
				if got := r.state.blocked(claudeA); got != tt.blocked {
					t.Errorf("blocked %v, want %v", got, tt.blocked)
				}
				if got := len(r.adapters.evidence()); got != tt.judged {
					t.Errorf("%d events judged, want %d", got, tt.judged)
				}
			})
		}
	}
}

func TestABlockerOfALateErrorIsDurableBeforeTheClientSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced()
		r, _ := newBubbleRig(t, p.serve)
		w := newWitness()
		release := make(chan struct{})
		r.state.durable = func(_ context.Context, sequence uint64) error {
			if r.state.blocked(claudeA) {
				<-release
			}
			return nil
		}
		served := r.serveTo(w, turn("s1"))
		p.parts <- claudeStart + claudeDelta
		// The events around the error come in one piece with it: what is before goes on, the error itself is held.
		p.parts <- claudeDelta + claudeQuota + comment
		synctest.Wait()
		if got, want := w.body(), claudeStart+claudeDelta+claudeDelta; got != want {
			t.Errorf("body %q before the blocker was durable, want %q", got, want)
		}
		close(release)
		close(p.parts)
		<-served
		if got, want := w.body(), claudeStart+claudeDelta+claudeDelta+claudeQuota+comment; got != want {
			t.Errorf("body %q, want %q", got, want)
		}
		if !r.state.blocked(claudeA) {
			t.Error("the account is not blocked")
		}
		if got := r.state.ended; got["completed"] != 1 {
			t.Errorf("attempts ended %v, want 1 completed", got)
		}
		if got := r.adapters.evidence(); !got[0].GetCommitted() {
			t.Error("the adapter was not told that the error came behind the commit")
		}
	})
}

func TestALateErrorIsHeldForASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newBubbleRig(t, func(conn net.Conn, _ int) {
			_, _ = conn.Write([]byte(sseHead))
			writeChunks(conn, []byte(claudeStart+claudeDelta+claudeQuota), 1<<15, true)
		})
		r.adapters.classify = func(ctx context.Context, _ *providerv1.ClassifyRequest) (Verdict, error) {
			<-ctx.Done()
			return Verdict{}, ctx.Err()
		}
		began := time.Now()
		if got := r.do(turn("s1")); got.body != claudeStart+claudeDelta+claudeQuota {
			t.Errorf("body %q, want the error relayed unjudged", got.body)
		}
		if held := time.Since(began); held != lateTime {
			t.Errorf("held for %v, want %v", held, lateTime)
		}
	})
}

func TestAGrammarThatListsAcceptedTypesBindsByThem(t *testing.T) {
	declared := claudeProfile()
	declared.Stream.Accepted = []string{"content_block_delta"}
	for _, tt := range []struct {
		name, events, boundTo string
	}{
		{"a listed type", claudeStart + claudeDelta + claudeStop, "a"},
		{"another type commits and binds nothing", claudeStart + claudeStop, ""},
		{"a listed type behind the commit", "event: novelty\ndata: {}\n\n" + claudeDelta + claudeStop, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.adapters.profiles["claude"] = compiled(t, "claude", declared)
			newRawUpstream(r, func(conn net.Conn, _ int) {
				_, _ = conn.Write([]byte(sseHead))
				writeChunks(conn, []byte(tt.events), 1<<15, true)
			})
			if got := r.do(turn("s1")); got.body != tt.events {
				t.Errorf("body %q, want %q", got.body, tt.events)
			}
			if got := r.state.bound("claude/s1", testModel); got != tt.boundTo {
				t.Errorf("bound to %q, want %q", got, tt.boundTo)
			}
		})
	}
}
