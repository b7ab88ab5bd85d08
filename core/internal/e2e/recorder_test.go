//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
)

// recorder stands between a client and the daemon and notes what left the client and what came back to it. It changes
// nothing but the Host header, which must name the daemon.
type recorder struct {
	url string

	mu        sync.Mutex // guards exchanges and what they point to
	exchanges []*exchange
}

// exchange is one request of a client and its answer.
type exchange struct {
	method, path string
	// session as the client's header names it.
	session string
	// sum and size of the body as it left the client, and its encoding.
	sum, encoding string
	size          int
	upgrade       bool
	// status and header of the answer, its bytes so far, and whether it has ended.
	status   int
	header   http.Header
	received int
	ended    bool
}

// turn reports whether the client asked for work of a model.
func (e exchange) turn() bool {
	return e.method == http.MethodPost && (strings.HasSuffix(e.path, "/v1/messages") || strings.HasSuffix(e.path, "/responses"))
}

func startRecorder(t *testing.T, daemon string) *recorder {
	t.Helper()
	r := &recorder{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(out *httputil.ProxyRequest) {
			out.Out.URL.Scheme, out.Out.URL.Host, out.Out.Host = "http", daemon, daemon
		},
		Transport:     &http.Transport{DisableCompression: true},
		FlushInterval: -1,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		// A reader of known length: the transport's writer then cannot race with an early answer.
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		e := r.begin(request, body)
		defer r.note(func() { e.ended = true })
		proxy.ServeHTTP(&notingWriter{ResponseWriter: w, recorder: r, exchange: e}, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *recorder) begin(request *http.Request, body []byte) *exchange {
	sum := sha256.Sum256(body)
	e := &exchange{
		method: request.Method, path: request.URL.Path,
		session: request.Header.Get("X-Claude-Code-Session-Id") + request.Header.Get("Session-Id"),
		sum:     hex.EncodeToString(sum[:]), size: len(body), encoding: request.Header.Get("Content-Encoding"),
		upgrade: request.Header.Get("Upgrade") != "",
	}
	r.note(func() { r.exchanges = append(r.exchanges, e) })
	return e
}

func (r *recorder) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// turns returns copies of the exchanges in which a client asked for work.
func (r *recorder) turns() (turns []exchange) {
	r.note(func() {
		for _, e := range r.exchanges {
			if e.turn() {
				turns = append(turns, *e)
			}
		}
	})
	return turns
}

// all returns copies of all exchanges.
func (r *recorder) all() (all []exchange) {
	r.note(func() {
		for _, e := range r.exchanges {
			all = append(all, *e)
		}
	})
	return all
}

// forget drops what was noted.
func (r *recorder) forget() { r.note(func() { r.exchanges = nil }) }

// notingWriter notes the answer on its way to the client.
type notingWriter struct {
	http.ResponseWriter
	recorder *recorder
	exchange *exchange
}

func (w *notingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *notingWriter) WriteHeader(status int) {
	w.recorder.note(func() { w.exchange.status, w.exchange.header = status, w.Header().Clone() })
	w.ResponseWriter.WriteHeader(status)
}

func (w *notingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.recorder.note(func() { w.exchange.received += n })
	return n, err
}
