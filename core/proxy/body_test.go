package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/sdk/wire"
)

func TestBodiesOfEverySizeGoUpWhole(t *testing.T) {
	r := newRig(t)
	for _, size := range []int{0, 1, smallPiece - 1, smallPiece, smallPiece + 1, largePiece - 1, largePiece, largePiece + 1, 3 * largePiece, 3*largePiece + 7} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		for _, declared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length declared: %v", size, declared), func(t *testing.T) {
				r.upstream.Forget()
				req := r.request(call{path: "/claude/v1/messages", body: body})
				if !declared {
					req.ContentLength = -1
					req.Body = io.NopCloser(strings.NewReader(body))
				}
				resp, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				got := r.upstream.Requests()
				if resp.StatusCode != 200 || len(got) != 1 || got[0].BodyBytes != size || got[0].BodySHA256 != sha256Hex([]byte(body)) {
					t.Errorf("status %d, upstream got %+v", resp.StatusCode, got)
				}
			})
		}
	}
	if err := r.proxy.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := r.proxy.memory.used.Load(); used != 0 {
		t.Errorf("%d bytes of memory are still taken", used)
	}
}

func TestABodyIsSentAgainAsItWas(t *testing.T) {
	r := newRig(t)
	body := `{"model":"` + testModel + `","stream":true,"messages":["` + strings.Repeat("y", 2*largePiece) + `"]}`
	r.upstream.Script("a", upstream.Quota("five_hour", resets))
	r.upstream.Script("b", upstream.Quota("five_hour", resets))
	wantServed(t, r.do(call{path: "/claude/v1/messages", session: "s1", body: body}))
	for _, request := range r.upstream.Requests() {
		if request.BodySHA256 != sha256Hex([]byte(body)) {
			t.Errorf("account %s got other bytes", request.Token)
		}
	}
	if got := r.accountsOf(); got != "a b c" {
		t.Errorf("turns reached %q, want a b c", got)
	}
}

func TestABodyThatIsCutReachesNobody(t *testing.T) {
	r := newRig(t)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /claude/v1/messages HTTP/1.1\r\nHost: %s\r\nX-Noria-Key: %s\r\nContent-Length: 10\r\n\r\nabc", r.addr, testKey)
	conn.Close()
	if err := r.proxy.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.upstream.Requests(); len(got) != 0 {
		t.Errorf("reached upstream: %+v", got)
	}
}

func TestReadersOutliveTheReleaseOfTheirBody(t *testing.T) {
	pool, budget := newPiecePool(), &memory{}
	b := &body{pool: pool, memory: budget, length: -1}
	content := bytes.Repeat([]byte("z"), largePiece+10)
	if done, err := b.keep(bytes.NewReader(content), 1<<30); !done || err != nil {
		t.Fatal(done, err)
	}
	reader, err := b.open()
	if err != nil {
		t.Fatal(err)
	}
	b.release()
	if budget.used.Load() == 0 {
		t.Error("the memory was given back while a reader was open")
	}
	if _, err := b.open(); !errors.Is(err, errBodySpent) {
		t.Errorf("opened after the release: %v", err)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, want %d", len(got), err, len(content))
	}
	for range 2 {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := budget.used.Load(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
	if _, err := reader.Read(make([]byte, 1)); err == nil {
		t.Error("read after close")
	}
}

func TestAFailuresBodyIsShownDecodedAndBounded(t *testing.T) {
	encoded := gzipped(t, `{"error":{"type":"usage_limit_reached"}}`+strings.Repeat(" ", 100<<10))
	for _, tt := range []struct {
		name, encoding, body string
		blocked              bool
	}{
		{"gzip", "gzip", encoded, true},
		{"gzip that is none", "gzip", "usage_limit_reached", false},
		{"an encoding that nobody knows", "rot13", "usage_limit_reached", false},
		{"plain", "", `usage_limit_reached` + strings.Repeat(" ", 100<<10), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.state.bind("codex/s1", "gpt-6.2-sol", codexA)
			newRawUpstream(r, func(conn net.Conn, _ int) {
				fmt.Fprintf(conn, "HTTP/1.1 400 Bad Request\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", tt.encoding, len(tt.body), tt.body)
			})
			got := r.do(codexTurn("s1"))
			if !tt.blocked && (got.status != 400 || got.body != tt.body) {
				t.Errorf("status %d, %d bytes, want the answer as it came", got.status, len(got.body))
			}
			if got := r.state.blocked(codexA); got != tt.blocked {
				t.Errorf("blocked %v, want %v", got, tt.blocked)
			}
			for _, e := range r.adapters.evidence() {
				if len(e.GetBody()) > 16<<10 {
					t.Errorf("the adapter was shown %d bytes", len(e.GetBody()))
				}
			}
		})
	}
}

func TestAPanicStaysWithItsRequest(t *testing.T) {
	r := newRig(t)
	r.proxy.adapters = panickingAdapters{r.adapters}
	if got := r.do(turn("s1")); got.broken == nil {
		t.Errorf("status %d, want a cut connection", got.status)
	}
	if got := r.do(call{method: http.MethodGet, path: "/healthz"}); got.status != 200 {
		t.Errorf("healthz afterwards: status %d", got.status)
	}
}

type panickingAdapters struct{ *fakeAdapters }

func (panickingAdapters) Lease(context.Context, quota.AccountID) (wire.Lease, error) {
	panic("a secret")
}

func TestTheTimeOfABodyEndsWithTheBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget int64
	}{
		{"that is kept", 0},
		{"that goes up as it comes", largePiece},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := Limits{ReplayMemory: tt.budget, BodyTime: time.Second}
				r, _ := newBubbleRig(t, func(conn net.Conn, _ int) {
					_, _ = conn.Write([]byte(sseHead))
					writeChunks(conn, []byte(claudeStart+claudeDelta), 1<<15, false)
					time.Sleep(10 * limits.BodyTime)
					writeChunks(conn, []byte(claudeStop), 1<<15, true)
				}, withLimits(limits))
				c := turn("s1")
				c.body = `{"model":"` + testModel + `","stream":true,"messages":["` + strings.Repeat("x", 3*largePiece) + `"]}`
				wantServed(t, r.do(c))
			})
		})
	}
}

func TestAPanicLeavesNothingBehindOfAnAnswerThatIsHeld(t *testing.T) {
	for _, provider := range []string{"claude", "codex"} {
		t.Run(provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newBubbleRig(t, func(conn net.Conn, _ int) {
					if provider == "claude" {
						fmt.Fprint(conn, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Length: 1000000\r\n\r\n")
						writeChunks(conn, make([]byte, 1<<16), 1<<15, true)
						return
					}
					_, _ = conn.Write([]byte(sseHead))
					writeChunks(conn, []byte("event: response.created\ndata: {}\n\n"+claudeThrottle), 1<<15, true)
				})
				r.proxy.state = &placesOnce{fakeState: r.state}
				c := turn("s1")
				if provider == "codex" {
					c = codexTurn("s1")
				}
				if got := r.do(c); got.broken == nil {
					t.Errorf("status %d, want a cut connection", got.status)
				}
				synctest.Wait()
				if n := r.state.inFlight(); n != 0 {
					t.Errorf("%d attempts are still reserved", n)
				}
				if used := r.proxy.memory.used.Load(); used != 0 {
					t.Errorf("%d bytes of memory are still taken", used)
				}
			})
		})
	}
}

// placesOnce panics when it is to place again.
type placesOnce struct {
	*fakeState
	placed bool
}

func (s *placesOnce) Place(req placement.Request) (placement.Decision, error) {
	if s.placed {
		panic("a secret")
	}
	s.placed = true
	return s.fakeState.Place(req)
}
