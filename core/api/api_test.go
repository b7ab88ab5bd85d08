package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDaemon answers with what it was asked, so that a test sees both ways of a call.
type fakeDaemon struct {
	err error

	mu    sync.Mutex // guards calls
	calls []string
}

func (d *fakeDaemon) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
	return d.err
}

func (d *fakeDaemon) noted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *fakeDaemon) Version() api.VersionInfo {
	return api.VersionInfo{Version: "1.2.3", API: api.Version}
}
func (d *fakeDaemon) Status(context.Context) (api.Status, error) {
	return api.Status{State: api.StateReady}, d.note("status")
}
func (d *fakeDaemon) Accounts(context.Context) ([]api.Account, error) { return nil, d.note("accounts") }
func (d *fakeDaemon) SetAccountEnabled(_ context.Context, id quota.AccountID, on bool) (api.Account, error) {
	return api.Account{Provider: id.Provider, Name: id.Name, Enabled: on}, d.note("set %v %v", id, on)
}
func (d *fakeDaemon) Connect(_ context.Context, id quota.AccountID) (api.LoginPlan, error) {
	return api.LoginPlan{}, d.note("connect %v", id)
}
func (d *fakeDaemon) Connected(_ context.Context, id quota.AccountID) (api.Account, error) {
	return api.Account{}, d.note("connected %v", id)
}
func (d *fakeDaemon) RefreshAccounts(_ context.Context, ids []quota.AccountID) ([]api.Account, error) {
	return []api.Account{}, d.note("refresh %v", ids)
}
func (d *fakeDaemon) Sessions(_ context.Context, f api.SessionFilter) ([]api.Session, error) {
	return []api.Session{{Key: "claude/one"}}, d.note("sessions %+v", f)
}
func (d *fakeDaemon) Session(_ context.Context, subject string) (api.SessionDetail, error) {
	return api.SessionDetail{Session: api.Session{Key: subject}}, d.note("session %s", subject)
}
func (d *fakeDaemon) MoveSession(_ context.Context, subject string, id quota.AccountID) (api.SessionDetail, error) {
	return api.SessionDetail{}, d.note("move %s %v", subject, id)
}
func (d *fakeDaemon) ForgetSession(_ context.Context, subject string) error {
	return d.note("forget %s", subject)
}
func (d *fakeDaemon) Plugins(context.Context) ([]api.Plugin, error) { return nil, d.note("plugins") }
func (d *fakeDaemon) Plugin(_ context.Context, name string) (api.PluginDetail, error) {
	return api.PluginDetail{}, d.note("plugin %s", name)
}
func (d *fakeDaemon) RestartPlugin(_ context.Context, name string) (api.Plugin, error) {
	return api.Plugin{}, d.note("restart %s", name)
}
func (d *fakeDaemon) Explain(_ context.Context, req api.ExplainRequest) (api.Explanation, error) {
	return api.Explanation{}, d.note("explain %+v", req)
}
func (d *fakeDaemon) Forecast(_ context.Context, provider, model string) (placement.Forecast, error) {
	return placement.Forecast{Kind: placement.ForecastUnknown}, d.note("forecast %s %s", provider, model)
}
func (d *fakeDaemon) Events(_ context.Context, after uint64, limit int) ([]api.Event, error) {
	return nil, d.note("events %d %d", after, limit)
}
func (d *fakeDaemon) WatchEvents(ctx context.Context, after uint64, send func(api.FollowedEvent) error) error {
	for i := range uint64(3) {
		if err := send(api.FollowedEvent{Event: api.Event{Sequence: after + 1 + i, Operation: events.OperationBound}, Missed: i}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}
func (d *fakeDaemon) Reload(context.Context) (api.ReloadResult, error) {
	return api.ReloadResult{Applied: true}, d.note("reload")
}
func (d *fakeDaemon) Token(context.Context) (api.Token, error) {
	return api.Token{Key: "made-up-key"}, d.note("token")
}
func (d *fakeDaemon) RotateToken(_ context.Context, req api.RotateRequest) (api.Token, error) {
	return api.Token{}, d.note("rotate %v", req.Runs)
}
func (d *fakeDaemon) CreateRunKey(_ context.Context, req api.RunKeyRequest) (api.RunKey, error) {
	return api.RunKey{ID: "7"}, d.note("run %s for %d", req.Provider, req.PID)
}
func (d *fakeDaemon) RevokeRunKey(_ context.Context, id string) error { return d.note("revoke %s", id) }
func (d *fakeDaemon) LaunchFlags(_ context.Context, provider string) (api.LaunchFlags, error) {
	return api.LaunchFlags{Flags: []string{"--settings"}}, d.note("flags %s", provider)
}
func (d *fakeDaemon) Launch(_ context.Context, req api.LaunchRequest) (api.LaunchPlan, error) {
	if req.Provider == "panic" {
		panic("made-up-secret")
	}
	return api.LaunchPlan{Argv: []string{req.Provider}}, d.note("launch %+v", req)
}

func (d *fakeDaemon) ExportState(_ context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, `{"bindings":[`); err != nil || d.err != nil {
		return errors.Join(err, d.err)
	}
	_, err := io.WriteString(w, `]}`)
	return err
}
func (d *fakeDaemon) ImportState(_ context.Context, r io.Reader) (api.StateImport, error) {
	raw, err := io.ReadAll(r)
	return api.StateImport{Added: len(raw)}, errors.Join(err, d.note("import"))
}

// serve runs a server for the daemon on a socket of its own and returns a client.
func serve(t *testing.T, daemon api.Daemon) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "noria", "control.sock")
	listener, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewServer(daemon, nil, hclog.NewNullLogger())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	client := api.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket was left behind: %v", err)
		}
	})
	return client
}

func TestEveryCallArrivesAsItWasMade(t *testing.T) {
	d := &fakeDaemon{}
	c, ctx := serve(t, d), t.Context()
	calls := []func() error{
		func() error { _, err := c.Version(ctx); return err },
		func() error { _, err := c.Status(ctx); return err },
		func() error { _, err := c.Accounts(ctx); return err },
		func() error { _, err := c.SetAccountEnabled(ctx, "claude/work", true); return err },
		func() error { _, err := c.SetAccountEnabled(ctx, "claude/work", false); return err },
		func() error { _, err := c.Connect(ctx, "claude/work"); return err },
		func() error { _, err := c.Connected(ctx, "claude/work"); return err },
		func() error { _, err := c.RefreshAccounts(ctx, []string{"codex/main"}); return err },
		func() error {
			_, err := c.Sessions(ctx, api.SessionFilter{Provider: "p", Account: "a", Limit: 5})
			return err
		},
		func() error { _, err := c.Sessions(ctx, api.SessionFilter{}); return err },
		func() error { _, err := c.Session(ctx, "claude/ä b?&"); return err },
		func() error { _, err := c.MoveSession(ctx, "one", "claude/work"); return err },
		func() error { return c.ForgetSession(ctx, "one") },
		func() error { _, err := c.Plugins(ctx); return err },
		func() error { _, err := c.Plugin(ctx, "a/../b"); return err },
		func() error { _, err := c.RestartPlugin(ctx, "acme"); return err },
		func() error { _, err := c.Explain(ctx, api.ExplainRequest{Subject: "one"}); return err },
		func() error { _, err := c.Explain(ctx, api.ExplainRequest{Provider: "claude", Model: "m"}); return err },
		func() error { _, err := c.Forecast(ctx, "claude", "m"); return err },
		func() error { _, err := c.Events(ctx, 3, 4); return err },
		func() error { _, err := c.Reload(ctx); return err },
		func() error { _, err := c.Token(ctx); return err },
		func() error { _, err := c.RotateToken(ctx, api.RotateRequest{Runs: true}); return err },
		func() error { _, err := c.CreateRunKey(ctx, api.RunKeyRequest{Provider: "claude"}); return err },
		func() error { return c.RevokeRunKey(ctx, "7") },
		func() error { _, err := c.LaunchFlags(ctx, "claude"); return err },
		func() error { _, err := c.Launch(ctx, api.LaunchRequest{Provider: "claude", Native: true}); return err },
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	want := []string{
		"status", "accounts", "set claude/work true", "set claude/work false", "connect claude/work", "connected claude/work", "refresh [codex/main]",
		"sessions {Provider:p Account:a Limit:5}", "sessions {Provider: Account: Limit:1000}", "session claude/ä b?&",
		"move one claude/work", "forget one", "plugins", "plugin a/../b", "restart acme",
		"explain {Subject:one Provider: Model:}", "explain {Subject: Provider:claude Model:m}", "forecast claude m",
		"events 3 4", "reload", "token", "rotate true", fmt.Sprintf("run claude for %d", os.Getpid()), "revoke 7", "flags claude",
		"launch {Provider:claude Native:true Seen:[]}",
	}
	if diff := cmp.Diff(want, d.noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListsAreArraysWhenEmpty(t *testing.T) {
	c := serve(t, &fakeDaemon{})
	for _, path := range []string{"/v1/accounts", "/v1/plugins", "/v1/events"} {
		if status, body := raw(t, c, http.MethodGet, path, ""); status != http.StatusOK || body != "[]\n" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

func TestErrorsKeepTheirCodeAndRemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want api.Error
	}{
		{&api.Error{Code: api.CodeNotFound, Message: "no such", Remedy: "look"}, api.Error{Code: api.CodeNotFound, Message: "no such", Remedy: "look"}},
		{fmt.Errorf("wrapped: %w", api.Errorf(api.CodeRefused, "no")), api.Error{Code: api.CodeRefused, Message: "no"}},
		{errors.New("disk\x1b[2J full"), api.Error{Code: api.CodeInternal, Message: `disk\x1b[2J full`}},
	} {
		client := serve(t, &fakeDaemon{err: c.err})
		_, err := client.Status(t.Context())
		var got *api.Error
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("%v came as %v", c.err, err)
		}
	}
}

func TestMalformedCallsAreRefusedBeforeTheDaemon(t *testing.T) {
	d := &fakeDaemon{}
	client := serve(t, d)
	for _, c := range []struct {
		rule, method, path, body string
		status                   int
		says                     string
	}{
		{"no JSON", "POST", "/v1/accounts/enable", "{", 400, "unexpected EOF"},
		{"no body", "POST", "/v1/accounts/enable", "", 400, "it has no body"},
		{"no object", "POST", "/v1/accounts/enable", "[]", 400, "it is a JSON array and no object"},
		{"a value of another kind", "POST", "/v1/accounts/enable", `{"account":7}`, 400, `"account" is a JSON number`},
		{"an unknown field", "POST", "/v1/accounts/enable", `{"account":"a/b","x":1}`, 400, "unknown field"},
		{"two values", "POST", "/v1/accounts/enable", `{"account":"a/b"}{}`, 400, "more than one JSON value"},
		{"no account", "POST", "/v1/accounts/enable", `{"account":"work"}`, 400, "names no account"},
		{"an account among others that is none", "POST", "/v1/accounts/refresh", `{"accounts":["a/b","c"]}`, 400, "names no account"},
		{"a body too large", "POST", "/v1/explain", `{"subject":"` + strings.Repeat("a", 2<<20) + `"}`, 400, "more than 1048576 bytes"},
		{"a subject too long", "POST", "/v1/explain", `{"subject":"` + strings.Repeat("a", 2000) + `"}`, 400, "at most 1024 bytes"},
		{"no subject", "GET", "/v1/session", "", 400, "name a session"},
		{"nothing to explain", "POST", "/v1/explain", `{}`, 400, "name a session"},
		{"two things to explain", "POST", "/v1/explain", `{"subject":"a","provider":"b"}`, 400, "name a session"},
		{"a limit that is none", "GET", "/v1/sessions?limit=-1", "", 400, "is no number"},
		{"a limit beyond the bound", "GET", "/v1/events?limit=99999999", "", 400, "is no number"},
		{"a forecast of nothing", "GET", "/v1/forecast", "", 400, "name a provider"},
		{"an unknown path", "GET", "/v1/secrets", "", 404, "has no GET /v1/secrets"},
		{"another version", "GET", "/v2/status", "", 404, "has no GET /v2/status"},
		{"another method", "DELETE", "/v1/status", "", 404, "has no DELETE /v1/status"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			status, body := raw(t, client, c.method, c.path, c.body)
			var answer struct{ Error *api.Error }
			if status != c.status || json.Unmarshal([]byte(body), &answer) != nil || answer.Error == nil || !strings.Contains(answer.Error.Message, c.says) {
				t.Errorf("got %d %q, want %d %q", status, body, c.status, c.says)
			}
			if strings.Contains(body, "api.") {
				t.Errorf("a name of the program is shown: %q", body)
			}
		})
	}
	if calls := d.noted(); len(calls) != 0 {
		t.Errorf("the daemon was called: %v", calls)
	}
}

func TestPanicOfOneCallShowsNoValueAndEndsNothing(t *testing.T) {
	client := serve(t, &fakeDaemon{})
	_, err := client.Launch(t.Context(), api.LaunchRequest{Provider: "panic"})
	if err == nil || strings.Contains(err.Error(), "made-up") {
		t.Errorf("got %v", err)
	}
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("the next call failed: %v", err)
	}
}

func TestExportedBindingsAreWholeOrAnError(t *testing.T) {
	var got strings.Builder
	if err := serve(t, &fakeDaemon{}).ExportState(t.Context(), &got); err != nil || got.String() != `{"bindings":[]}` {
		t.Errorf("got %q %v", got.String(), err)
	}
	if err := serve(t, &fakeDaemon{err: errors.New("disk full")}).ExportState(t.Context(), io.Discard); err == nil {
		t.Error("half an export is no error")
	}
}

func TestImportTakesMoreThanOtherCallsAndIsBounded(t *testing.T) {
	client := serve(t, &fakeDaemon{})
	large := `"` + strings.Repeat("a", 3<<20) + `"`
	if done, err := client.ImportState(t.Context(), strings.NewReader(large)); err != nil || done.Added != len(large) {
		t.Errorf("got %+v %v", done, err)
	}
	for rule, text := range map[string]string{"no JSON": "{", "nothing": "", "too much": `"` + strings.Repeat("a", 65<<20) + `"`} {
		var refused *api.Error
		if _, err := client.ImportState(t.Context(), strings.NewReader(text)); !errors.As(err, &refused) || refused.Code != api.CodeInvalid {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestFollowedEventsComeInOrderUntilTheReaderLeaves(t *testing.T) {
	client := serve(t, &fakeDaemon{})
	enough := errors.New("enough")
	var got, missed []uint64
	err := client.FollowEvents(t.Context(), 41, func(e api.FollowedEvent) error {
		got, missed = append(got, e.Sequence), append(missed, e.Missed)
		if len(got) == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]uint64{42, 43, 44}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{0, 1, 2}, missed); diff != "" {
		t.Errorf("missed (-want +got):\n%s", diff)
	}
}

func TestFollowedEventsEndWithTheDaemon(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "noria", "control.sock")
	listener, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewServer(&fakeDaemon{}, nil, hclog.NewNullLogger())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	client := api.NewClient(socket)
	defer client.Close()
	closed := make(chan error, 1)
	err = client.FollowEvents(t.Context(), 0, func(e api.FollowedEvent) error {
		if e.Sequence == 3 {
			go func() { closed <- server.Close(context.Background()) }()
		}
		return nil
	})
	if err := errors.Join(err, <-closed, <-ended); err != nil {
		t.Error(err)
	}
}

func TestNobodyThereIsItsOwnError(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	address := &net.UnixAddr{Name: stale, Net: "unix"}
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	for _, socket := range []string{filepath.Join(dir, "none.sock"), stale} {
		_, err := api.NewClient(socket).Status(t.Context())
		if !errors.Is(err, api.ErrNotRunning) || !strings.Contains(err.Error(), socket) {
			t.Errorf("%s: %v", socket, err)
		}
	}
}

func TestSocketIsForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "noria")
	socket := filepath.Join(dir, "control.sock")
	listener, err := api.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for path, want := range map[string]os.FileMode{dir: 0o700, socket: 0o600} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	t.Run("a second daemon, with the pid of the first", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "noria", "control.sock")
		first, err := api.Listen(socket)
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.Listen(socket)
		var held *api.InUseError
		if !errors.As(err, &held) || held.PID != os.Getpid() {
			t.Errorf("got %v", err)
		}
		first.Close()
		second, err := api.Listen(socket)
		if err != nil {
			t.Fatalf("after the first ended: %v", err)
		}
		second.Close()
	})
	t.Run("a directory that is open to others", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := api.Listen(filepath.Join(dir, "control.sock")); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a link in place of the directory", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink(t.TempDir(), filepath.Join(dir, "noria")); err != nil {
			t.Fatal(err)
		}
		if _, err := api.Listen(filepath.Join(dir, "noria", "control.sock")); err == nil {
			t.Error("it listens")
		}
	})
	t.Run("a file in place of the socket", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "noria")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, "control.sock")
		if err := os.WriteFile(socket, []byte("keep"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := api.Listen(socket); err == nil {
			t.Error("it listens")
		}
		if kept, err := os.ReadFile(socket); err != nil || string(kept) != "keep" {
			t.Errorf("the file was lost: %v", err)
		}
	})
}

// raw calls the server as a client would that is not ours.
func raw(t *testing.T, c *api.Client, method, path, body string) (status int, answer string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", c.Socket())
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://noria"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
