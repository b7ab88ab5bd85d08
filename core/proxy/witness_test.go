package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
)

// witness is a client's side of an answer that notes the order of what happens.
type witness struct {
	header http.Header

	mu       sync.Mutex // guards what follows
	happened []string
	written  []byte
}

func newWitness() *witness { return &witness{header: http.Header{}} }

// saw notes something that happened, the same in a row once.
func (w *witness) saw(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.happened); n == 0 || w.happened[n-1] != what {
		w.happened = append(w.happened, what)
	}
}

func (w *witness) order() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.happened)
}

func (w *witness) body() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.written)
}

func (w *witness) Header() http.Header { return w.header }

func (w *witness) WriteHeader(status int) { w.saw(fmt.Sprintf("header %d", status)) }

func (w *witness) Write(p []byte) (int, error) {
	w.saw("byte")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, p...)
	return len(p), nil
}

func (w *witness) Flush() { w.saw("flush") }

// serveTo serves a call to w, without a connection. The channel tells when that is over, and whether the connection would
// have been cut.
func (r *rig) serveTo(w http.ResponseWriter, c call) <-chan bool {
	outgoing := r.request(c)
	in := httptest.NewRequest(outgoing.Method, outgoing.URL.Path, outgoing.Body)
	in.Header, in.Host = outgoing.Header, outgoing.Host
	addr, _ := net.ResolveTCPAddr("tcp", r.addr)
	in = in.WithContext(context.WithValue(outgoing.Context(), http.LocalAddrContextKey, addr))
	served := make(chan bool, 1)
	go func() {
		defer func() { served <- recover() != nil }()
		r.proxy.ServeHTTP(w, in)
	}()
	return served
}
