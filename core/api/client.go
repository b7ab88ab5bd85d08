package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/placement"
)

// maxAnswer bounds what a daemon may answer: 100,000 sessions fit.
const maxAnswer = 128 << 20

// ErrNotRunning says that no daemon serves the control socket.
var ErrNotRunning = errors.New("daemon not running")

// Client calls the daemon behind a control socket. It is safe for concurrent use. Calls end with their context and return
// ErrNotRunning, *Error, or what went wrong on the way.
type Client struct {
	socket string
	http   *http.Client
	// fault is why no daemon may be called.
	fault error
}

// NewClient returns a client; it connects with the first call.
func NewClient(socket string) *Client {
	var dialer net.Dialer
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		DisableCompression: true,
	}}}
}

// Faulty returns a client whose calls all return err: for a daemon that is not to be guessed.
func Faulty(err error) *Client {
	c := NewClient("")
	c.fault = err
	return c
}

// Socket that it calls.
func (c *Client) Socket() string { return c.socket }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version of the daemon.
func (c *Client) Version(ctx context.Context) (VersionInfo, error) {
	return call[VersionInfo](ctx, c, http.MethodGet, "version", nil, nil)
}

// Status of the daemon.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "status", nil, nil)
}

// Accounts in configuration order.
func (c *Client) Accounts(ctx context.Context) ([]Account, error) {
	return call[[]Account](ctx, c, http.MethodGet, "accounts", nil, nil)
}

// SetAccountEnabled turns the operator's switch of PROVIDER/NAME.
func (c *Client) SetAccountEnabled(ctx context.Context, account string, enabled bool) (Account, error) {
	action := "disable"
	if enabled {
		action = "enable"
	}
	return call[Account](ctx, c, http.MethodPost, "accounts/"+action, nil, accountRequest{Account: account})
}

// RefreshAccounts reads the quota of these accounts now, of all when none is named.
func (c *Client) RefreshAccounts(ctx context.Context, accounts []string) ([]Account, error) {
	return call[[]Account](ctx, c, http.MethodPost, "accounts/refresh", nil, accountsRequest{Accounts: accounts})
}

// Connect begins a login of PROVIDER/NAME and gives the official client's command for it.
func (c *Client) Connect(ctx context.Context, account string) (LoginPlan, error) {
	return call[LoginPlan](ctx, c, http.MethodPost, "accounts/connect", nil, accountRequest{Account: account})
}

// Connected ends a login of PROVIDER/NAME and reads the account anew.
func (c *Client) Connected(ctx context.Context, account string) (Account, error) {
	return call[Account](ctx, c, http.MethodPost, "accounts/connected", nil, accountRequest{Account: account})
}

// Sessions, most recently used first.
func (c *Client) Sessions(ctx context.Context, filter SessionFilter) ([]Session, error) {
	query := url.Values{}
	set(query, "provider", filter.Provider)
	set(query, "account", filter.Account)
	if filter.Limit > 0 {
		query.Set("limit", strconv.Itoa(filter.Limit))
	}
	return call[[]Session](ctx, c, http.MethodGet, "sessions", query, nil)
}

// Session finds one by key, identity or hash, or a unique beginning of these.
func (c *Client) Session(ctx context.Context, subject string) (SessionDetail, error) {
	return call[SessionDetail](ctx, c, http.MethodGet, "session", url.Values{"subject": {subject}}, nil)
}

// MoveSession binds all models of a session to PROVIDER/NAME.
func (c *Client) MoveSession(ctx context.Context, subject, account string) (SessionDetail, error) {
	return call[SessionDetail](ctx, c, http.MethodPost, "session/move", nil, moveRequest{Subject: subject, Account: account})
}

// ForgetSession drops a session's bindings.
func (c *Client) ForgetSession(ctx context.Context, subject string) error {
	_, err := call[done](ctx, c, http.MethodPost, "session/forget", nil, subjectRequest{Subject: subject})
	return err
}

// Plugins of the configuration.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) {
	return call[[]Plugin](ctx, c, http.MethodGet, "plugins", nil, nil)
}

// Plugin with what it offers.
func (c *Client) Plugin(ctx context.Context, name string) (PluginDetail, error) {
	return call[PluginDetail](ctx, c, http.MethodGet, "plugins/"+url.PathEscape(name), nil, nil)
}

// RestartPlugin starts a new process and returns when it is ready or failed.
func (c *Client) RestartPlugin(ctx context.Context, name string) (Plugin, error) {
	return call[Plugin](ctx, c, http.MethodPost, "plugins/"+url.PathEscape(name)+"/restart", nil, nil)
}

// Explain says why a session is where it is.
func (c *Client) Explain(ctx context.Context, req ExplainRequest) (Explanation, error) {
	return call[Explanation](ctx, c, http.MethodPost, "explain", nil, req)
}

// Forecast for a new session of that provider and model (empty: any).
func (c *Client) Forecast(ctx context.Context, provider, model string) (placement.Forecast, error) {
	query := url.Values{"provider": {provider}}
	set(query, "model", model)
	return call[placement.Forecast](ctx, c, http.MethodGet, "forecast", query, nil)
}

// Events after that sequence, oldest first; limit 0 means the daemon's default.
func (c *Client) Events(ctx context.Context, after uint64, limit int) ([]Event, error) {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return call[[]Event](ctx, c, http.MethodGet, "events", query, nil)
}

// FollowEvents calls receive with events after that sequence as they come, until ctx ends, the daemon ends (nil), or
// receive fails.
func (c *Client) FollowEvents(ctx context.Context, after uint64, receive func(FollowedEvent) error) error {
	query := url.Values{"after": {strconv.FormatUint(after, 10)}}
	answer, err := c.do(ctx, http.MethodGet, "events/follow", query, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event FollowedEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := receive(event); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// A connection that is cut is how a daemon ends.
	return nil
}

// Reload reads the configuration again.
func (c *Client) Reload(ctx context.Context) (ReloadResult, error) {
	return call[ReloadResult](ctx, c, http.MethodPost, "reload", nil, nil)
}

// Token that clients of this user show to the proxy.
func (c *Client) Token(ctx context.Context) (Token, error) {
	return call[Token](ctx, c, http.MethodGet, "token", nil, nil)
}

// RotateToken makes another one.
func (c *Client) RotateToken(ctx context.Context, req RotateRequest) (Token, error) {
	return call[Token](ctx, c, http.MethodPost, "token/rotate", nil, req)
}

// CreateRunKey makes a key for one run, which ends with the process that calls.
func (c *Client) CreateRunKey(ctx context.Context, req RunKeyRequest) (RunKey, error) {
	return call[RunKey](ctx, c, http.MethodPost, "runs", nil, req)
}

// RevokeRunKey ends a run's key.
func (c *Client) RevokeRunKey(ctx context.Context, id string) error {
	_, err := call[done](ctx, c, http.MethodDelete, "runs/"+url.PathEscape(id), nil, nil)
	return err
}

// LaunchFlags names the flags of the official client that Launch must see.
func (c *Client) LaunchFlags(ctx context.Context, provider string) (LaunchFlags, error) {
	return call[LaunchFlags](ctx, c, http.MethodGet, "launch/flags", url.Values{"provider": {provider}}, nil)
}

// Launch says how the official client is started behind the daemon.
func (c *Client) Launch(ctx context.Context, req LaunchRequest) (LaunchPlan, error) {
	return call[LaunchPlan](ctx, c, http.MethodPost, "launch", nil, req)
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// call sends body as JSON (nil: none) and reads the answer.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (T, error) {
	var result T
	answer, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return result, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&result); err != nil {
		return result, fmt.Errorf("read answer of the daemon: %w", err)
	}
	return result, nil
}

// do returns the answer when it is a good one; its body must be closed.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	target := "http://noria/" + Version + "/" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		return nil, fmt.Errorf("call the daemon: %w", err)
	}
	answer, err := c.http.Do(req)
	switch {
	case nobodyListens(err):
		return nil, fmt.Errorf("%w: nothing answers at %s", ErrNotRunning, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return nil, &Error{
			Code: CodeRefused, Message: "this user may not use " + c.socket, Remedy: "run the command as the user whose daemon it is, or name another configuration with -config",
		}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("call the daemon: %w", ctx.Err())
	case err != nil:
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // the made-up address says nothing
		}
		return nil, fmt.Errorf("call the daemon: %w", err)
	case answer.StatusCode >= http.StatusBadRequest:
		defer answer.Body.Close()
		return nil, readError(answer)
	}
	return answer, nil
}

// nobodyListens: there is no socket, none that somebody serves, or none that can be (its path is below a file, or too long).
func nobodyListens(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EINVAL)
}

func readError(answer *http.Response) error {
	var body errorAnswer
	err := json.NewDecoder(io.LimitReader(answer.Body, maxRequestBody)).Decode(&body)
	if err != nil || body.Error == nil {
		return fmt.Errorf("call the daemon: it answered %s", printable.Bounded(answer.Status, 60))
	}
	return body.Error
}
