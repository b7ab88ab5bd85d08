package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody bounds what the upstream reads of a request.
const maxBody = 8 << 20

// upstream is the simulated provider's server on loopback.
type upstream struct {
	baseURL string
	now     func() time.Time
	server  *http.Server
	stopped chan struct{}

	mu      sync.Mutex // guards all below
	byToken map[string]*meter
	latency time.Duration
}

func startUpstream(now func() time.Time) (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start simulated upstream: %w", err)
	}
	u := &upstream{baseURL: "http://" + listener.Addr().String(), now: now, stopped: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/turns", u.turn)
	mux.HandleFunc("POST /v1/count", u.count)
	mux.HandleFunc("GET /v1/models", u.models)
	u.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(u.stopped)
		_ = u.server.Serve(listener) // ends with ErrServerClosed
	}()
	return u, nil
}

// serve replaces the accounts.
func (u *upstream) serve(meters []*meter, latency time.Duration) {
	byToken := map[string]*meter{}
	for _, m := range meters {
		byToken[m.token] = m
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byToken, u.latency = byToken, latency
}

// stop lets answers end until ctx is over, then cuts them.
func (u *upstream) stop(ctx context.Context) error {
	err := u.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, u.server.Close())
	}
	<-u.stopped
	return err
}

// account finds the account by the request's token, or answers 401.
func (u *upstream) account(w http.ResponseWriter, r *http.Request) (m *meter, latency time.Duration, ok bool) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	defer u.mu.Unlock()
	if m, ok = u.byToken[token]; !ok {
		writeFailure(w, http.StatusUnauthorized, newFailure("invalid_token"))
	}
	return m, u.latency, ok
}

func (u *upstream) turn(w http.ResponseWriter, r *http.Request) {
	account, latency, ok := u.account(w, r)
	if !ok {
		return
	}
	var asked struct {
		Model  string `json:"model"`
		Stream *bool  `json:"stream"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&asked); err != nil {
		writeFailure(w, http.StatusBadRequest, newFailure("invalid_request"))
		return
	}
	streaming := asked.Stream == nil || *asked.Stream
	ruled := account.rule(u.now())
	writeQuota(w.Header(), ruled.clocks)
	if ruled.rejectedBy != "" {
		w.Header().Set(headerRejectedBy, ruled.rejectedBy)
		told := rejection(ruled)
		if streaming && ruled.inStream {
			rejectInStream(w, asked.Model, told)
			return
		}
		writeFailure(w, http.StatusTooManyRequests, told)
		return
	}
	if streaming {
		stream(w, r, asked.Model, latency)
		return
	}
	if wait(r.Context(), latency) {
		writeJSON(w, http.StatusOK, map[string]string{"type": "answer", "model": asked.Model, "text": answer})
	}
}

const answer = "Water rises from the river, wheel by wheel, and every bucket is filled once."

// stream writes the answer word by word over the latency.
func stream(w http.ResponseWriter, r *http.Request, model string, latency time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	words := strings.SplitAfter(answer, " ")
	pause := latency / time.Duration(len(words)+1)
	writeEvent(w, map[string]string{"type": eventStart, "model": model})
	for _, word := range words {
		if !wait(r.Context(), pause) {
			return
		}
		writeEvent(w, map[string]string{"type": eventText, "text": word})
	}
	if wait(r.Context(), pause) {
		writeEvent(w, map[string]string{"type": eventDone})
	}
}

// rejectInStream answers 200 and then says that it will not.
func rejectInStream(w http.ResponseWriter, model string, told failure) {
	w.Header().Set("Content-Type", "text/event-stream")
	writeEvent(w, map[string]string{"type": eventStart, "model": model})
	writeEvent(w, told)
}

func (u *upstream) count(w http.ResponseWriter, r *http.Request) {
	if _, _, ok := u.account(w, r); !ok {
		return
	}
	size, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	if err != nil {
		writeFailure(w, http.StatusBadRequest, newFailure("invalid_request"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]int64{"tokens": size / 4})
}

func (u *upstream) models(w http.ResponseWriter, r *http.Request) {
	if _, _, ok := u.account(w, r); ok {
		writeJSON(w, http.StatusOK, map[string][]string{"models": {"simulated-large", "simulated-small"}})
	}
}

func newFailure(code string) failure {
	told := failure{Type: eventError}
	told.Error.Code = code
	return told
}

func rejection(ruled ruling) failure {
	told := newFailure("quota_exhausted")
	told.Error.Window = ruled.rejectedBy
	for _, c := range ruled.clocks {
		if c.id == ruled.rejectedBy {
			told.Error.ResetsAt = c.resetsAt.UTC()
		}
	}
	return told
}

func writeFailure(w http.ResponseWriter, status int, told failure) { writeJSON(w, status, told) }

// Errors of the writers below mean that the client has left, which its context tells as well.

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func writeEvent(w http.ResponseWriter, event any) {
	data, err := json.Marshal(event)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
