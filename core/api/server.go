package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/internal/calls"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// Bounds of what a client may send and ask for.
const (
	maxRequestBody  = 1 << 20
	maxRequestHead  = 16 << 10
	defaultSessions = 1000
	maxSessions     = 100_000
	defaultEvents   = 200
	maxEvents       = 10_000
	maxSubject      = 1024
)

// Server serves the control API of one daemon.
type Server struct {
	daemon  Daemon
	logger  hclog.Logger
	http    *http.Server
	running calls.Running
	closing context.Context // ends streams of events
	close   context.CancelFunc
}

// NewServer returns a server. metrics answers /metrics and may be nil.
func NewServer(daemon Daemon, metrics http.Handler, logger hclog.Logger) *Server {
	s := &Server{daemon: daemon, logger: logger}
	s.closing, s.close = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	s.routes(mux)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	s.http = &http.Server{
		Handler:           s.running.Handler(s.guard(mux)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		ConnContext:       withPeer,
		MaxHeaderBytes:    maxRequestHead,
		ErrorLog:          logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return s
}

// Serve answers on the listener until Close; it then returns nil.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control API: %w", err)
	}
	return nil
}

// Close ends streams of events, waits for other calls until ctx ends, cuts those that are left, and closes the listener. When it
// returns, no call runs.
func (s *Server) Close(ctx context.Context) error {
	defer s.running.Close()
	s.close()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("close control API: %w", err), s.http.Close())
	}
	return nil
}

// guard bounds bodies, and keeps a panic of one call from showing its values.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(maxRequestBody)
		if r.URL.Path == "/v1/state" {
			limit = maxState
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case http.ErrAbortHandler:
				panic(cause)
			default:
				s.logger.Error("call panicked", "path", printable.Bounded(r.URL.Path, 200), "class", fmt.Sprintf("%T", cause))
				writeError(w, Errorf(CodeInternal, "the daemon failed at this call"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) routes(mux *http.ServeMux) {
	d := s.daemon
	handle(mux, "GET /v1/version", func(*http.Request) (VersionInfo, error) { return d.Version(), nil })
	handle(mux, "GET /v1/status", func(r *http.Request) (Status, error) { return d.Status(r.Context()) })
	handle(mux, "GET /v1/accounts", func(r *http.Request) ([]Account, error) { return list(d.Accounts(r.Context())) })
	handle(mux, "POST /v1/accounts/enable", s.switchAccount(true))
	handle(mux, "POST /v1/accounts/disable", s.switchAccount(false))
	handle(mux, "POST /v1/accounts/refresh", s.refreshAccounts)
	handle(mux, "POST /v1/accounts/connect", forAccount(d.Connect))
	handle(mux, "POST /v1/accounts/connected", forAccount(d.Connected))
	handle(mux, "GET /v1/sessions", s.sessions)
	handle(mux, "GET /v1/session", s.session)
	handle(mux, "POST /v1/session/move", s.moveSession)
	handle(mux, "POST /v1/session/forget", s.forgetSession)
	handle(mux, "GET /v1/plugins", func(r *http.Request) ([]Plugin, error) { return list(d.Plugins(r.Context())) })
	handle(mux, "GET /v1/plugins/{name}", func(r *http.Request) (PluginDetail, error) { return d.Plugin(r.Context(), r.PathValue("name")) })
	handle(mux, "POST /v1/plugins/{name}/restart", func(r *http.Request) (Plugin, error) { return d.RestartPlugin(r.Context(), r.PathValue("name")) })
	handle(mux, "POST /v1/explain", s.explain)
	handle(mux, "GET /v1/forecast", s.forecast)
	handle(mux, "GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/events/follow", s.followEvents)
	handle(mux, "POST /v1/reload", func(r *http.Request) (ReloadResult, error) { return d.Reload(r.Context()) })
	handle(mux, "GET /v1/token", func(r *http.Request) (Token, error) { return d.Token(r.Context()) })
	handle(mux, "POST /v1/token/rotate", s.rotateToken)
	handle(mux, "POST /v1/runs", s.createRunKey)
	handle(mux, "DELETE /v1/runs/{id}", func(r *http.Request) (done, error) {
		return done{}, d.RevokeRunKey(r.Context(), r.PathValue("id"))
	})
	handle(mux, "GET /v1/launch/flags", func(r *http.Request) (LaunchFlags, error) {
		return d.LaunchFlags(r.Context(), r.URL.Query().Get("provider"))
	})
	handle(mux, "POST /v1/launch", s.launch)
	mux.HandleFunc("GET /v1/state", s.exportState)
	handle(mux, "POST /v1/state", s.importState)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &Error{
			Code: CodeNotFound, Message: "the control API has no " + printable.Bounded(r.Method+" "+r.URL.Path, 200),
			Remedy: "the daemon may be older than this command; start it anew after an upgrade",
		})
	})
}

// done is the answer of calls that return nothing.
type done struct{}

func (s *Server) switchAccount(enabled bool) func(*http.Request) (Account, error) {
	return forAccount(func(ctx context.Context, id quota.AccountID) (Account, error) {
		return s.daemon.SetAccountEnabled(ctx, id, enabled)
	})
}

// forAccount reads which account a call is about.
func forAccount[T any](f func(context.Context, quota.AccountID) (T, error)) func(*http.Request) (T, error) {
	return func(r *http.Request) (result T, err error) {
		var req accountRequest
		if err := readJSON(r, &req); err != nil {
			return result, err
		}
		id, err := accountID(req.Account)
		if err != nil {
			return result, err
		}
		return f(r.Context(), id)
	}
}

func (s *Server) refreshAccounts(r *http.Request) ([]Account, error) {
	var req accountsRequest
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	ids := make([]quota.AccountID, 0, len(req.Accounts))
	for _, name := range req.Accounts {
		id, err := accountID(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return list(s.daemon.RefreshAccounts(r.Context(), ids))
}

func (s *Server) sessions(r *http.Request) ([]Session, error) {
	query := r.URL.Query()
	limit, err := number(query.Get("limit"), defaultSessions, maxSessions)
	if err != nil {
		return nil, err
	}
	return list(s.daemon.Sessions(r.Context(), SessionFilter{
		Provider: query.Get("provider"), Account: query.Get("account"), Limit: int(limit),
	}))
}

func (s *Server) session(r *http.Request) (SessionDetail, error) {
	subject := r.URL.Query().Get("subject")
	if err := checkSubject(subject); err != nil {
		return SessionDetail{}, err
	}
	return s.daemon.Session(r.Context(), subject)
}

func (s *Server) moveSession(r *http.Request) (SessionDetail, error) {
	var req moveRequest
	if err := readJSON(r, &req); err != nil {
		return SessionDetail{}, err
	}
	if err := checkSubject(req.Subject); err != nil {
		return SessionDetail{}, err
	}
	id, err := accountID(req.Account)
	if err != nil {
		return SessionDetail{}, err
	}
	return s.daemon.MoveSession(r.Context(), req.Subject, id)
}

func (s *Server) forgetSession(r *http.Request) (done, error) {
	var req subjectRequest
	if err := readJSON(r, &req); err != nil {
		return done{}, err
	}
	if err := checkSubject(req.Subject); err != nil {
		return done{}, err
	}
	return done{}, s.daemon.ForgetSession(r.Context(), req.Subject)
}

func (s *Server) explain(r *http.Request) (Explanation, error) {
	var req ExplainRequest
	if err := readJSON(r, &req); err != nil {
		return Explanation{}, err
	}
	if (req.Subject == "") == (req.Provider == "") {
		return Explanation{}, Errorf(CodeInvalid, "name a session or request, or the provider of a new session")
	}
	if req.Subject != "" {
		if err := checkSubject(req.Subject); err != nil {
			return Explanation{}, err
		}
	}
	return s.daemon.Explain(r.Context(), req)
}

func (s *Server) forecast(r *http.Request) (placement.Forecast, error) {
	query := r.URL.Query()
	if query.Get("provider") == "" {
		return placement.Forecast{}, Errorf(CodeInvalid, "name a provider")
	}
	return s.daemon.Forecast(r.Context(), query.Get("provider"), query.Get("model"))
}

func (s *Server) rotateToken(r *http.Request) (Token, error) {
	var req RotateRequest
	if err := readJSON(r, &req); err != nil {
		return Token{}, err
	}
	return s.daemon.RotateToken(r.Context(), req)
}

func (s *Server) createRunKey(r *http.Request) (RunKey, error) {
	var req RunKeyRequest
	if err := readJSON(r, &req); err != nil {
		return RunKey{}, err
	}
	req.PID = peerOf(r.Context())
	return s.daemon.CreateRunKey(r.Context(), req)
}

func (s *Server) launch(r *http.Request) (LaunchPlan, error) {
	var req LaunchRequest
	if err := readJSON(r, &req); err != nil {
		return LaunchPlan{}, err
	}
	return s.daemon.Launch(r.Context(), req)
}

// handle answers with what f returns, as JSON.
func handle[T any](mux *http.ServeMux, pattern string, f func(*http.Request) (T, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		result, err := f(r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, result)
	})
}

// list makes an empty list of none, which is [] in JSON and not null.
func list[T any](items []T, err error) ([]T, error) {
	if items == nil {
		items = []T{}
	}
	return items, err
}

func readJSON(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return Errorf(CodeInvalid, "read request: %s", malformed(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Errorf(CodeInvalid, "read request: more than one JSON value")
	}
	return nil
}

// malformed says what is wrong with a request, without the names that things have in this program.
func malformed(err error) string {
	var (
		kind  *json.UnmarshalTypeError
		large *http.MaxBytesError
	)
	switch {
	case errors.Is(err, io.EOF):
		return "it has no body"
	case errors.As(err, &large):
		return fmt.Sprintf("it has more than %d bytes", large.Limit)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("%q is a JSON %s, which does not belong there", printable.Bounded(kind.Field, 60), printable.Bounded(kind.Value, 60))
	case errors.As(err, &kind):
		return fmt.Sprintf("it is a JSON %s and no object", printable.Bounded(kind.Value, 60))
	}
	return printable.Bounded(strings.TrimPrefix(err.Error(), "json: "), 200)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		writeError(w, fmt.Errorf("encode answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client is gone when this fails, and there is nobody to tell.
	_, _ = w.Write(append(raw, '\n'))
}

type errorAnswer struct {
	Error *Error `json:"error"`
}

func writeError(w http.ResponseWriter, err error) {
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Code: CodeInternal, Message: printable.Bounded(err.Error(), 500)}
	}
	writeJSON(w, known.Code.status(), errorAnswer{Error: known})
}

func (c Code) status() int {
	switch c {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodeAmbiguous, CodeRefused:
		return http.StatusConflict
	case CodeUnsupported:
		return http.StatusNotImplemented
	case CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func accountID(name string) (quota.AccountID, error) {
	id, ok := quota.ParseAccountID(name)
	if !ok || len(name) > maxSubject {
		return id, &Error{
			Code: CodeInvalid, Message: fmt.Sprintf("%q names no account", printable.Bounded(name, 100)),
			Remedy: "write PROVIDER/NAME, as \"noria accounts list\" shows it",
		}
	}
	return id, nil
}

func checkSubject(subject string) error {
	if subject == "" || len(subject) > maxSubject {
		return Errorf(CodeInvalid, "name a session or a request, in at most %d bytes", maxSubject)
	}
	return nil
}

// number reads a query parameter: fallback when it is empty.
func number(text string, fallback, most uint64) (uint64, error) {
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, Errorf(CodeInvalid, "%q is no number up to %d", printable.Bounded(text, 40), most)
	}
	return n, nil
}
