package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// rawAnswer is what came back on a connection.
type rawAnswer struct {
	status int
	header http.Header
	body   string
	// closed is true when the proxy closed the connection after it.
	closed bool
	all    string
}

// sendRaw sends bytes as they are and reads one final answer.
func (r *rig) sendRaw(raw []byte) rawAnswer {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	// A bound for a proxy that hangs, never reached by one that does not.
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write(raw); err != nil {
		r.t.Fatal(err)
	}
	var seen bytes.Buffer
	from := bufio.NewReader(io.TeeReader(conn, &seen))
	for {
		resp, err := http.ReadResponse(from, &http.Request{Method: strings.SplitN(string(raw), " ", 2)[0]})
		if err != nil {
			r.t.Fatalf("read answer: %v after %q", err, seen.String())
		}
		if resp.StatusCode < 200 {
			continue
		}
		a := rawAnswer{status: resp.StatusCode, header: resp.Header}
		body, err := io.ReadAll(resp.Body)
		a.body = string(body)
		if resp.Close && err == nil {
			_, err = from.ReadByte()
		}
		// What the proxy did not read makes the system reset the connection.
		a.closed = errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
		a.all = seen.String()
		return a
	}
}

// hostileRequest reads a fixture and addresses it to this proxy.
func (r *rig) hostileRequest(name string) []byte {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/hostile/requests", name))
	if err != nil {
		r.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(r.addr)
	return []byte(strings.NewReplacer(" /v1/", " /claude/v1/", ":7777", ":"+port, "X-Session-Id", "X-Claude-Code-Session-Id").Replace(string(raw)))
}

func TestHostileRequestsAreRefusedWithoutEcho(t *testing.T) {
	served := map[string]bool{
		"q00-good.http": true, "q40-hop.http": true, "q43-session-id-weird.http": true, "q44-expect.http": true,
	}
	statuses := map[string]int{
		"q01-cl-te.http": 400, "q02-two-cl.http": 400, "q03-te-list.http": 400, "q04-te-vt.http": 400, "q06-obs-fold.http": 400,
		"q13-rebind.http": 403, "q14-host-port-only.http": 403, "q17-host-zero.http": 403, "q20-host-other-port.http": 403,
		"q21-origin-null.http": 403, "q22-origin-localhost-3000.http": 403, "q23-form-post.http": 403, "q25-absolute-uri.http": 403,
		"q27-double-slash.http": 404, "q28-dotdot.http": 404, "q31-h2c.http": 400, "q34-wrong-token.http": 401, "q41-headers-20000.http": 431,
	}
	entries, err := os.ReadDir("testdata/hostile/requests")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if served[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			got := r.sendRaw(r.hostileRequest(name))
			if got.status < 400 || got.status > 499 || statuses[name] != 0 && got.status != statuses[name] {
				t.Errorf("status %d, want %d", got.status, statuses[name])
			}
			if !got.closed {
				t.Error("the connection was left open")
			}
			for _, echo := range []string{"CANARY", "evil", "smug", "meta-data", "Access-Control"} {
				if strings.Contains(got.all, echo) {
					t.Errorf("%q came back in %q", echo, got.all)
				}
			}
			if all := r.upstream.Requests(); len(all) != 0 {
				t.Errorf("reached upstream: %+v", all)
			}
		})
	}
}

func TestAGoodRequestIsForwardedOnce(t *testing.T) {
	r := newRig(t)
	got := r.sendRaw(r.hostileRequest("q00-good.http"))
	if all := r.upstream.Requests(); got.status != 200 || len(all) != 1 || all[0].BodyBytes != 2 {
		t.Errorf("status %d, upstream got %+v, want one request", got.status, all)
	}
}

func TestOnlyTheAccountsCredentialGoesUp(t *testing.T) {
	r := newRig(t)
	got := r.sendRaw(r.hostileRequest("q40-hop.http"))
	all := r.upstream.Requests()
	if got.status != 200 || len(all) != 1 {
		t.Fatalf("status %d, %d requests upstream", got.status, len(all))
	}
	for name, values := range all[0].Header {
		switch name {
		case "Authorization":
			if len(values) != 1 || values[0] != "Bearer a" {
				t.Errorf("authorization %q, want the account's", values)
			}
		case "Accept-Encoding":
			if len(values) != 1 || values[0] != "identity" {
				t.Errorf("accept-encoding %q, want identity", values)
			}
		case "Content-Length":
		default:
			t.Errorf("header %s: %q went up", name, values)
		}
	}
}

func TestAnOverlongSessionIsKnownByItsDigest(t *testing.T) {
	r := newRig(t)
	if got := r.sendRaw(r.hostileRequest("q43-session-id-weird.http")); got.status != 200 {
		t.Fatalf("status %d", got.status)
	}
	for session := range r.state.latest {
		if !strings.HasPrefix(session, "claude/sha256:") || len(session) > 100 {
			t.Errorf("session key %q, want a digest", session)
		}
	}
	if len(r.state.latest) != 1 {
		t.Errorf("%d sessions bound, want 1", len(r.state.latest))
	}
}

func TestExpectIsAnsweredHereAndNotForwarded(t *testing.T) {
	r := newRig(t)
	got := r.sendRaw(r.hostileRequest("q44-expect.http"))
	all := r.upstream.Requests()
	if got.status != 200 || len(all) != 1 || all[0].Header.Get("Expect") != "" {
		t.Errorf("status %d, upstream got %+v", got.status, all)
	}
	if !strings.HasPrefix(got.all, "HTTP/1.1 100 Continue\r\n") {
		t.Errorf("answer %q, want it to begin with 100 Continue", got.all)
	}
}

func TestABodyWithoutProgressIsGivenUpAndReservesNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		send func(conn net.Conn)
	}{
		{"nothing comes", func(net.Conn) {}},
		{"a byte now and then", func(conn net.Conn) {
			for {
				time.Sleep(time.Second)
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, u := newBubbleRig(t, goodStream)
				conn, err := r.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(conn, "POST /claude/v1/messages HTTP/1.1\r\nHost: %s\r\nX-Noria-Key: %s\r\nContent-Length: 1000\r\n\r\n", r.addr, testKey)
				began := time.Now()
				var sending sync.WaitGroup
				sending.Go(func() { tt.send(conn) })
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				waited := time.Since(began)
				conn.Close()
				sending.Wait()
				if resp.StatusCode != http.StatusRequestTimeout || waited != DefaultLimits().BodyTime {
					t.Errorf("status %d after %v, want 408 after %v", resp.StatusCode, waited, DefaultLimits().BodyTime)
				}
				synctest.Wait()
				if used := r.proxy.memory.used.Load(); used != 0 {
					t.Errorf("%d bytes of memory are still taken", used)
				}
				if n := u.count(); n != 0 {
					t.Errorf("%d requests reached upstream", n)
				}
			})
		})
	}
}

func TestAConnectionIsWatchedOverSeveralRequests(t *testing.T) {
	good := func(addr, framing, body string) string {
		return "POST /claude/v1/messages HTTP/1.1\r\nHost: " + addr + "\r\nX-Noria-Key: " + testKey + "\r\n" + framing + "\r\n\r\n" + body
	}
	for _, tt := range []struct{ name, framing, body string }{
		{"behind a body of known length", "Content-Length: 2", "{}"},
		{"behind chunks", "Transfer-Encoding: chunked", "2;ext=1\r\n{}\r\n0\r\nTrailer: x\r\n\r\n"},
		{"behind an empty body", "Content-Length: 0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			conn, err := net.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			from := bufio.NewReader(conn)
			var statuses []int
			for _, raw := range []string{
				good(r.addr, tt.framing, tt.body), good(r.addr, tt.framing, tt.body),
				good(r.addr, "X-Folded: a\r\n b\r\nContent-Length: 0", ""),
			} {
				if _, err := conn.Write([]byte(raw)); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(from, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				statuses = append(statuses, resp.StatusCode)
			}
			if fmt.Sprint(statuses) != "[200 200 400]" {
				t.Errorf("statuses %v, want two good ones and then 400", statuses)
			}
		})
	}
}

func TestHeadersThatCrossPiecesAreWatched(t *testing.T) {
	raw := []byte("POST /x HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n")
	for split := range len(raw) {
		var w headWatch
		if w.accept(raw[:split]) && w.accept(raw[split:]) {
			t.Errorf("split at %d: accepted", split)
		}
	}
	var w headWatch
	for i := range raw {
		if !w.accept(raw[i : i+1]) {
			if i != len(raw)-1 {
				t.Errorf("refused at byte %d, before the header was over", i)
			}
			return
		}
	}
	t.Error("accepted in single bytes")
}

func FuzzHeadWatch(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n\r\n"), 3)
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 7)
	f.Fuzz(func(t *testing.T, raw []byte, split int) {
		var whole, parts headWatch
		want := whole.accept(raw)
		split = min(max(split, 0), len(raw))
		if got := parts.accept(raw[:split]) && parts.accept(raw[split:]); got != want {
			t.Errorf("whole %v, split at %d %v", want, split, got)
		}
		if len(whole.line) > maxWatchedLine {
			t.Errorf("keeps %d bytes of a line", len(whole.line))
		}
	})
}

func TestUpstreamSeesTheBytesOfHostileBodies(t *testing.T) {
	entries, err := os.ReadDir("testdata/hostile/bodies")
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]string{"b03-model-late.json": "claude-opus-4-5"}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			r := newRig(t)
			body, err := os.ReadFile(filepath.Join("testdata/hostile/bodies", entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			c := call{path: "/claude/v1/messages", body: string(body), header: http.Header{}}
			switch filepath.Ext(entry.Name()) {
			case ".gz":
				c.header.Set("Content-Encoding", "gzip")
			case ".zst":
				c.header.Set("Content-Encoding", "zstd")
			}
			if got := r.do(c); got.status != 200 {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			all := r.upstream.Requests()
			if len(all) != 1 || all[0].BodySHA256 != sha256Hex(body) || all[0].Header.Get("Content-Encoding") != c.header.Get("Content-Encoding") {
				t.Errorf("upstream got %+v, want the same bytes and encoding", all)
			}
			if got := r.events.wait(t.Context(), "request", 1)[0].Model; got != models[entry.Name()] {
				t.Errorf("model %q, want %q", got, models[entry.Name()])
			}
		})
	}
}

func sha256Hex(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
