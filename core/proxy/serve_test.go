package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/noria-dev/noria/core/internal/upstream"
)

func TestADrainingProxyLetsStreamsEnd(t *testing.T) {
	r := newRig(t)
	goOn := make(chan struct{})
	r.upstream.Script("a", upstream.OK().HaltUntil(goOn))
	_, body := r.openStream(turn("s1"))
	drained := make(chan error)
	go func() { drained <- r.proxy.Shutdown(context.Background()) }()
	for {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			break
		}
		conn.Close()
	}
	close(goOn)
	all, err := io.ReadAll(body)
	if err != nil || !strings.HasSuffix(string(all), claudeStop) {
		t.Errorf("body %q, %v, want the stream to its end", all, err)
	}
	if err := <-drained; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestAShutdownThatTakesTooLongCutsStreams(t *testing.T) {
	r := newRig(t)
	r.upstream.Script("a", upstream.OK().HaltUntil(make(chan struct{})))
	_, body := r.openStream(turn("s1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.proxy.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want the context's error", err)
	}
	if len(r.events.of("request")) != 1 {
		t.Error("Shutdown returned before the request that it cut had ended")
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the stream ended cleanly")
	}
}

func TestTenThousandFastStreamsAreAllWhole(t *testing.T) {
	r := newRig(t)
	answer := claudeStart + claudeDelta + claudeStop
	fast := http.NewServeMux()
	fast.HandleFunc("/v1/messages", func(w http.ResponseWriter, _ *http.Request) {
		// Answers before it has read the request, as a fast upstream does.
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	})
	server := serveHTTP(t, fast)
	for account := range r.adapters.bases {
		r.adapters.bases[account] = server
	}
	const streams, clients = 10000, 16
	body := `{"model":"` + testModel + `","stream":true,"messages":["` + strings.Repeat("x", 20<<10) + `"]}`
	var next, lost atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for next.Add(1) <= streams {
				got := r.do(call{path: "/claude/v1/messages", session: "s1", body: body})
				if got.broken != nil || got.body != answer {
					lost.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := lost.Load(); n != 0 {
		t.Errorf("%d of %d streams lost", n, streams)
	}
}

// serveHTTP serves a handler on a loopback port and gives its base URL.
func serveHTTP(t testing.TB, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	return "http://" + listener.Addr().String()
}
