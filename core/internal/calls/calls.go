// Package calls lets whoever closes an HTTP server await its handlers: net/http awaits none of a connection that it cuts, and
// they would go on with what is closed after the server.
package calls

import (
	"net/http"
	"sync"
)

// Running are the calls of a handler that have not ended. The zero value is ready; it is safe for concurrent use.
type Running struct {
	mu     sync.Mutex // guards closed, and the beginning of a call against the wait for all
	closed bool
	calls  sync.WaitGroup
}

// Handler counts the calls of next.
func (r *Running) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.begin() {
			panic(http.ErrAbortHandler)
		}
		defer r.calls.Done()
		next.ServeHTTP(w, req)
	})
}

func (r *Running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.calls.Add(1)
	return true
}

// Close returns when all calls have ended, which it does not cause; connections are to be closed before. A call that begins
// later is cut.
func (r *Running) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
}
