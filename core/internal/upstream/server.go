// Package upstream plays the providers' upstreams on a loopback address for tests: Claude's /v1/messages and Codex's
// /responses with what belongs to them, in shapes taken from recorded exchanges, good enough for the official clients.
//
// How each account is answered is a script that may change while clients run. Every request is recorded.
package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Server is one upstream for both providers. The base URL of Claude is URL, that of Codex URL + "/backend-api/codex",
// that of Codex's account backend URL + "/backend-api".
type Server struct {
	URL string

	http *httptest.Server
	now  func() time.Time

	mu       sync.Mutex // guards what follows
	scripts  map[string][]Behaviour
	usage    map[string]Usage
	requests []*Request
	minted   int
	changed  chan struct{} // closed and replaced whenever requests changed
}

// Request is one request as it reached the upstream.
type Request struct {
	// At is when its header had come, Done when its answer ended; zero while it runs.
	At, Done            time.Time
	Method, Path, Query string
	// Token is the credential that it came with, AccountID the value of chatgpt-account-id.
	Token, AccountID string
	// Session as the client's own header names it.
	Session string
	Model   string
	Stream  bool
	// BodySHA256 is of the bytes on the wire, in hex.
	BodySHA256 string
	BodyBytes  int
	Header     http.Header
	// Status of the answer; 0 while there is none or when the connection was cut before one.
	Status int
	// Left is true when the other side gave up before the answer ended.
	Left bool
}

// Turn reports whether the request asks for work of a model.
func (r Request) Turn() bool {
	return r.Method == http.MethodPost && (strings.HasSuffix(r.Path, "/v1/messages") || strings.HasSuffix(r.Path, "/responses"))
}

// Start listens on a free port of 127.0.0.1.
func Start() *Server {
	s := &Server{
		now:     time.Now,
		scripts: map[string][]Behaviour{},
		usage:   map[string]Usage{},
		changed: make(chan struct{}),
	}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = nil
	s.http.Start()
	s.URL = s.http.URL
	return s
}

// Close cuts all connections and waits for the handlers.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Script says how requests with this credential are answered from now on: by one behaviour after the other, then
// always by the last. A credential without a script gets 401.
func (s *Server) Script(token string, behaviours ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[token] = behaviours
}

// SetUsage says what the windows of this credential's account read in answers from now on.
func (s *Server) SetUsage(token string, usage Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usage[token] = usage
}

// Requests returns copies of all requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all
}

// Turns returns the requests that ask for work of a model.
func (s *Server) Turns() []Request {
	var turns []Request
	for _, r := range s.Requests() {
		if r.Turn() {
			turns = append(turns, r)
		}
	}
	return turns
}

// Forget drops the recorded requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
	s.signal()
}

// Wait blocks until enough holds for the recorded requests, or done is closed, which makes it false.
func (s *Server) Wait(done <-chan struct{}, enough func([]Request) bool) bool {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if enough(s.Requests()) {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// signal wakes those who wait. The caller holds mu.
func (s *Server) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// id mints the number of an answer.
func (s *Server) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minted++
	return fmt.Sprintf("%019d", s.minted)
}

// behaviour takes the next one of the credential's script.
func (s *Server) behaviour(token string, turn bool) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	script := s.scripts[token]
	if len(script) == 0 {
		return Unauthorized()
	}
	// Only turns advance a script: how often a client lists models is its own affair.
	if turn && len(script) > 1 {
		s.scripts[token] = script[1:]
	}
	return script[0]
}

func (s *Server) usageOf(token string) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage[token]
}

// serve records the request, reads all of it, and answers by the script.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	request := &Request{
		At: s.now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(),
		Token: credential(r.Header), AccountID: r.Header.Get("chatgpt-account-id"), Session: session(r.Header),
	}
	s.update(func() { s.requests = append(s.requests, request) })
	defer func() { s.update(func() { request.Done = s.now(); request.Left = r.Context().Err() != nil }) }()

	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	sum := sha256.Sum256(body)
	asked := parseBody(r.Header.Get("Content-Encoding"), body)
	s.update(func() {
		request.BodySHA256, request.BodyBytes = hex.EncodeToString(sum[:]), len(body)
		request.Model, request.Stream = asked.Model, asked.Stream
	})
	answer := &answer{server: s, w: w, r: r, asked: asked, usage: s.usageOf(request.Token), status: func(code int) {
		s.update(func() { request.Status = code })
	}}
	answer.dispatch(s.behaviour(request.Token, request.Turn()))
}

func (s *Server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.signal()
}

func credential(h http.Header) string {
	if bearer, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok {
		return bearer
	}
	return h.Get("X-Api-Key")
}

func session(h http.Header) string {
	if id := h.Get("X-Claude-Code-Session-Id"); id != "" {
		return id
	}
	return h.Get("Session-Id")
}

// asked is what the answer depends on.
type asked struct {
	Model        string `json:"model"`
	Stream       bool   `json:"stream"`
	OutputConfig struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"output_config"`
}

func parseBody(encoding string, body []byte) (a asked) {
	if encoding == "zstd" {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return a
		}
		defer decoder.Close()
		if body, err = decoder.DecodeAll(body, nil); err != nil {
			return a
		}
	}
	_ = json.Unmarshal(body, &a)
	return a
}
