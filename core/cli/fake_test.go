package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/cli"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is the time of every test.
var at = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// fakeDaemon is a daemon with two providers and a past. What it does not define is not called by a command.
type fakeDaemon struct {
	api.Daemon
	plan    api.LaunchPlan
	reload  api.ReloadResult
	hostile bool

	mu    sync.Mutex // guards notes
	notes []string
}

func (d *fakeDaemon) note(words ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, strings.Join(words, " "))
}

func (d *fakeDaemon) noted() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.notes)
}

// name is a name as an attacker would choose it, when the daemon is hostile.
func (d *fakeDaemon) name(name string) string {
	if d.hostile {
		return "\x1b[2J\x1b]0;owned\a\u202e" + name + "\r\n"
	}
	return name
}

func percent(v float64) *float64 { return &v }

func (d *fakeDaemon) Status(ctx context.Context) (api.Status, error) {
	accounts, err := d.Accounts(ctx)
	return api.Status{
		Version: "0.1.0", State: api.StateReady, PID: 4123, StartedAt: at.Add(-134 * time.Minute),
		Config: d.name("/home/user/.config/noria/noria.hcl"), Generation: 2, Listen: []string{"127.0.0.1:4517", "[::1]:4517"},
		Journal: "ok", Sessions: 12, Streams: 1,
		Providers: []api.ProviderStatus{
			{Name: "claude", Adapter: "ready", Usable: 1},
			{Name: "codex", Adapter: "ready", Forecast: &placement.Forecast{
				Kind: placement.ForecastExact, At: at.Add(72 * time.Minute),
				Account: quota.AccountID{Provider: "codex", Name: "main"}, Causes: map[string]int{"quota": 1, "disabled": 1},
			}},
		},
		Accounts: accounts, At: at,
	}, err
}

func (d *fakeDaemon) Accounts(context.Context) ([]api.Account, error) {
	return []api.Account{
		{
			Provider: "claude", Name: d.name("work"), Enabled: true, Auth: "signed_in", Usable: true, Sessions: 4, InFlight: 1,
			Windows: []api.Window{
				{ID: "five_hour", Label: "5h", State: "fresh", UsedPercent: percent(42.9), ResetsAt: at.Add(134 * time.Minute), ObservedAt: at.Add(-12 * time.Second)},
				{ID: "weekly", Label: "weekly", State: "rolled", UsedPercent: percent(3), Estimated: true, ResetsAt: at.Add(6 * 24 * time.Hour), Predicted: true, ObservedAt: at.Add(-26 * time.Hour)},
				{ID: "weekly_opus", Label: "weekly", Models: []string{"opus*"}, State: "not_exposed"},
			},
			Blockers: []api.Blocker{{
				Cause: quota.CauseQuota, Model: "opus", Window: "weekly_opus", Reason: "usage_limit_reached", NoLaterThan: at.Add(50 * time.Hour), ObservedAt: at,
			}},
		},
		{
			Provider: "claude", Name: "personal", Enabled: true, Auth: "signed_out", ProbeError: "timeout", Blockers: []api.Blocker{{Cause: quota.CauseAuth, ObservedAt: at}},
			Windows: []api.Window{
				{ID: "five_hour", Label: "5h", State: "observed", UsedPercent: percent(12), ObservedAt: at.Add(-26 * time.Minute)},
				{ID: "weekly", Label: "weekly", State: "pending"},
			},
		},
		{
			Provider: "codex", Name: "main", Enabled: true, Auth: "unknown", Sessions: 8,
			Windows: []api.Window{{ID: "primary", Label: "weekly", State: "exhausted", UsedPercent: percent(100), ResetsAt: at.Add(72 * time.Minute), ObservedAt: at.Add(-3 * time.Minute)}},
			Blockers: []api.Blocker{
				{Cause: quota.CauseQuota, Window: "primary", ClearsAt: at.Add(72 * time.Minute), ObservedAt: at},
				{Cause: quota.CauseThrottle, Cooldown: true, ClearsAt: at.Add(20 * time.Second), ObservedAt: at},
			},
		},
		{Provider: "codex", Name: "ci", DisabledBy: "config"},
	}, nil
}

// logins are what the official client does, by the account's name.
var logins = map[string]string{
	"work": "exit 0", "refused": "exit 3",
	// The user presses Ctrl-C, which reaches this process and the client.
	"interrupted": "trap 'trap - INT; kill -INT $$' INT; kill -INT $PPID; while :; do sleep 0.01; done",
}

func (d *fakeDaemon) Connect(_ context.Context, id quota.AccountID) (api.LoginPlan, error) {
	d.note("connect", id.String())
	return api.LoginPlan{Argv: []string{"sh", "-c", "test -z \"$OTHER\" && eval \"$LOGIN\""},
		Environment: map[string]string{"HOME_OF_IT": "/home/user/." + d.name(id.Name), "LOGIN": logins[id.Name]}, Unset: []string{"OTHER"}}, nil
}

func (d *fakeDaemon) Connected(_ context.Context, id quota.AccountID) (api.Account, error) {
	d.note("connected", id.String())
	return api.Account{Provider: id.Provider, Name: id.Name, Enabled: true, Usable: true}, nil
}

func (d *fakeDaemon) SetAccountEnabled(_ context.Context, id quota.AccountID, enabled bool) (api.Account, error) {
	d.note("set", id.String())
	switch id.Name {
	case "none":
		return api.Account{}, &api.Error{Code: api.CodeNotFound, Message: "there is no account claude/none", Remedy: "noria accounts list shows them"}
	case "last":
		return api.Account{}, api.Errorf(api.CodeRefused, "refused")
	}
	return api.Account{Provider: id.Provider, Name: id.Name, Enabled: enabled && id.Name != "ci"}, nil
}

func (d *fakeDaemon) RefreshAccounts(ctx context.Context, ids []quota.AccountID) ([]api.Account, error) {
	accounts, err := d.Accounts(ctx)
	return accounts[:2], err
}

func (d *fakeDaemon) session() api.Session {
	return api.Session{
		Key: d.name("claude/7f3a9c1e-5b7d-4c22-9d0a-1f2e3d4c5b6a"), Hash: "a1b2c3d4", Provider: "claude", LastUsed: at.Add(-40 * time.Second), InFlight: 1,
		Bindings: []api.Binding{
			{
				Model: "opus", Account: "claude/work", BoundAt: at.Add(-3 * time.Hour), LastUsed: at.Add(-40 * time.Second), BoundBy: "failover", Cause: "usage_limit_reached",
				Moves: []api.Move{{From: "claude/personal", To: "claude/work", At: at.Add(-3 * time.Hour), By: "failover", Cause: "usage_limit_reached"}},
			},
			{Model: "haiku", Account: "claude/work", BoundAt: at.Add(-5 * time.Hour), LastUsed: at.Add(-2 * time.Hour), BoundBy: "initial"},
		},
	}
}

func (d *fakeDaemon) Sessions(context.Context, api.SessionFilter) ([]api.Session, error) {
	return []api.Session{d.session()}, nil
}

func (d *fakeDaemon) Session(_ context.Context, subject string) (api.SessionDetail, error) {
	if subject == "7" {
		return api.SessionDetail{}, &api.Error{Code: api.CodeAmbiguous, Message: "2 sessions begin with 7", Remedy: "write more of it"}
	}
	history, err := d.Events(context.Background(), 0, 10)
	return api.SessionDetail{Session: d.session(), History: history}, err
}

func (d *fakeDaemon) MoveSession(_ context.Context, subject string, id quota.AccountID) (api.SessionDetail, error) {
	d.note("move", subject, id.String())
	return api.SessionDetail{Session: d.session()}, nil
}

func (d *fakeDaemon) ForgetSession(_ context.Context, subject string) error {
	d.note("forget", subject)
	return nil
}

func (d *fakeDaemon) Events(context.Context, uint64, int) ([]api.Event, error) {
	return []api.Event{
		{Sequence: 6, At: at.Add(-13 * time.Hour), Component: events.ComponentAgent, Operation: events.OperationReady},
		{Sequence: 7, At: at.Add(-time.Minute), Component: events.ComponentProxy, Operation: events.OperationFailover, RequestID: "r1", Attempt: 2, SessionHash: "a1b2c3d4", Provider: "claude", Account: d.name("work"), From: "personal", Model: "opus", Status: 429, Outcome: "quota_exhausted", Reason: "usage_limit_reached", Duration: 1234567 * time.Microsecond},
		{Sequence: 8, At: at, Component: events.ComponentPlugin, Operation: events.OperationAdapter, State: "ready", Provider: "codex"},
	}, nil
}

func (d *fakeDaemon) WatchEvents(_ context.Context, after uint64, send func(api.FollowedEvent) error) error {
	return errors.Join(
		send(api.FollowedEvent{Event: api.Event{Sequence: after + 1, At: at, Operation: events.OperationBound, Provider: "claude", Account: "work", Reason: "known"}}),
		send(api.FollowedEvent{Missed: 12, Event: api.Event{Sequence: after + 14, At: at, Operation: events.OperationAttempt, Provider: "claude", Account: "work", Outcome: "network", Reason: "network"}}),
	)
}

func (d *fakeDaemon) Explain(ctx context.Context, req api.ExplainRequest) (api.Explanation, error) {
	work, personal := quota.AccountID{Provider: "claude", Name: "work"}, quota.AccountID{Provider: "claude", Name: "personal"}
	placed := &placement.Decision{
		Placed: true, Account: work, How: placement.HowKnown, Score: 1.2345678, Margin: 0.25, At: at.Add(-3 * time.Hour),
		Candidates: []placement.Candidate{
			{Account: work, Class: placement.ClassKnown, Score: 1.2345678, Terms: []placement.Term{{
				Window: "five_hour", Name: "5h", State: "observed", Observed: 42, HasObserved: true, Kappa: 0.5, Used: 42.5, Reserved: 1, Committed: 10.25, New: 20, HoursLeft: 2.2333, Rate: 32.5, Sustainable: 40,
			}}},
			{Account: personal, Filtered: "blocked", Detail: "out of quota (5h)", ClearsAt: at.Add(-time.Hour)},
		},
	}
	blocked := &placement.Decision{At: at, Forecast: placement.Forecast{
		Kind: placement.ForecastNoLaterThan, At: at.Add(30 * time.Hour), Account: work, Causes: map[string]int{"quota": 2},
	}}
	switch {
	case req.Provider == "codex":
		return api.Explanation{Now: blocked}, nil
	case req.Provider != "":
		return api.Explanation{Now: placed}, nil
	}
	session := d.session()
	history, err := d.Events(ctx, 0, 10)
	for _, operation := range []events.Operation{events.OperationAttempt, events.OperationRequest} {
		history = append(history, api.Event{At: at, Operation: operation, Provider: "claude", Account: "work", Status: 200, Outcome: "accepted"})
	}
	return api.Explanation{
		Session: &session, Model: req.Model, Last: placed, History: history,
		Now: &placement.Decision{Placed: true, Account: work, How: placement.HowBound, Bound: true},
		Reservations: []api.Reservation{
			{Request: "r1", Account: "claude/work", Model: "opus", StartedAt: at.Add(-40 * time.Second), Estimates: []api.Estimate{{Window: "five_hour", Name: "5h", Percent: 0.5}}},
		},
	}, err
}

func (d *fakeDaemon) Reload(context.Context) (api.ReloadResult, error) { return d.reload, nil }

func (d *fakeDaemon) Token(context.Context) (api.Token, error) {
	return api.Token{Key: "made-up-key"}, nil
}

func (d *fakeDaemon) LaunchFlags(_ context.Context, provider string) (api.LaunchFlags, error) {
	if provider == "acme" {
		return api.LaunchFlags{}, &api.Error{Code: api.CodeUnsupported, Message: "the adapter of acme does not start a client"}
	}
	return api.LaunchFlags{Flags: []string{"--settings"}}, nil
}

func (d *fakeDaemon) Launch(_ context.Context, req api.LaunchRequest) (api.LaunchPlan, error) {
	for _, f := range req.Seen {
		d.note("seen", f.Flag, f.Value)
	}
	return d.plan, nil
}

func (d *fakeDaemon) CreateRunKey(context.Context, api.RunKeyRequest) (api.RunKey, error) {
	d.note("key made")
	return api.RunKey{ID: "id", Key: "made-up-run-key", BaseURL: "http://127.0.0.1:4517/claude"}, nil
}

func (d *fakeDaemon) RevokeRunKey(_ context.Context, id string) error {
	d.note("revoked", id)
	return nil
}

func (d *fakeDaemon) ExportState(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, `{"bindings":[]}`)
	return err
}

func (d *fakeDaemon) ImportState(_ context.Context, r io.Reader) (api.StateImport, error) {
	raw, err := io.ReadAll(r)
	d.note("import", string(raw))
	return api.StateImport{Added: 1, Kept: 2}, err
}

func (d *fakeDaemon) Plugins(context.Context) ([]api.Plugin, error) {
	return []api.Plugin{
		{
			Name: "claude", Provider: "claude", Version: "0.1.0", SDK: "0.1.0", Status: "ready", PID: 41233, StartedAt: at.Add(-134 * time.Minute),
			Accounts: 3, SHA256: strings.Repeat("3f9a", 15) + "00c1", Digest: "ok", Source: "bundled",
		},
		{
			Name: "acme", Provider: "acme", Version: "0.1.0", SDK: "0.1.0", Status: "backoff", Restarts: 4, Accounts: 1,
			SHA256: strings.Repeat("91be", 15) + "0007", Digest: "ok", Source: "plugins/noria-provider-acme",
			Reason: "exited", Detail: "exited with status 7: cannot read token", RetryAt: at.Add(4 * time.Second),
		},
		{Name: "mine", Provider: "mine", Status: "disabled", Digest: "dev", Source: "/src/mine", Dev: true},
	}, nil
}

func (d *fakeDaemon) Plugin(ctx context.Context, name string) (api.PluginDetail, error) {
	plugins, err := d.Plugins(ctx)
	return api.PluginDetail{
		Plugin: plugins[1], Services: []string{"noria.plugin.v1.Plugin"}, AccountNames: []string{"a"},
		ConfigSchema:    []api.Attribute{{Name: "endpoint", Type: "string", Required: true, Doc: "base URL of the upstream"}},
		AccountSchema:   []api.Attribute{{Name: "token", Type: "string", Sensitive: true}, {Name: "retries", Type: "number", Default: "3"}},
		LastStderr:      []string{"cannot read token\x1b[2J"},
		DroppedLogLines: 2,
	}, err
}

// inPrivateHome gives the commands a world of their own. The socket of a daemon is below the directory that it returns.
func inPrivateHome(t *testing.T) string {
	t.Helper()
	// A socket's path must be short, and that of t.TempDir is not.
	dir, err := os.MkdirTemp("", "nc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "NORIA_CONFIG", "COMP_LINE"} {
		t.Setenv(name, "")
	}
	return dir
}

// serve runs a daemon where the commands look for it.
func serve(t *testing.T, d api.Daemon) {
	t.Helper()
	listener, err := api.Listen((&config.Host{}).ControlSocket())
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewServer(d, nil, hclog.NewNullLogger())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(context.Background()), <-ended); err != nil {
			t.Error(err)
		}
	})
}

// noria runs a command line.
func noria(t *testing.T, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	return noriaWith(t, &cli.Program{Stdin: strings.NewReader("")}, arguments...)
}

func noriaWith(t *testing.T, p *cli.Program, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p.Version, p.Stdout, p.Stderr = "0.1.0", &out, &errs
	p.Now, p.Location = func() time.Time { return at }, time.UTC
	code = p.Main(arguments)
	return code, out.String(), errs.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
