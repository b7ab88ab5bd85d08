package plugintest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/noria-dev/noria/sdk/plugintest"
)

const token = "canary-token-4711"

func number(n float64) *float64 { return &n }

// sample are fixtures that say all that the suite asks for.
func sample(defect string) plugintest.Fixtures {
	want := func(outcome, scope string) plugintest.Verdict {
		return plugintest.Verdict{Outcome: outcome, Scope: scope}
	}
	quota := want("quota_exhausted", "account")
	quota.Windows = []plugintest.Window{{ID: "1d", State: "exhausted", UsedPercent: number(100)}}
	return plugintest.Fixtures{
		// A race detector that waits a second at the end of every process would make minutes of this.
		Environment: map[string]string{adapterVariable: defect, "GORACE": "atexit_sleep_ms=0"},
		Accounts: []plugintest.Account{
			{Name: "in", Config: map[string]any{"token": token}},
			{Name: "out", Refusal: "signed_out"},
		},
		Secrets: []string{token},
		Outcomes: []plugintest.OutcomeCase{
			{Name: "quota", Status: 429, Body: []byte(`"quota"`), Headers: map[string]string{"x-used": "100"}, Want: quota},
			{Name: "throttled", Status: 429, Headers: map[string]string{"retry-after": "30"},
				Want: plugintest.Verdict{Outcome: "throttled", Scope: "account", RetryAfter: "30s"}},
			{Name: "auth", Status: 401, Want: want("auth_failed", "account")},
			{Name: "overloaded", Status: 503, Want: want("overloaded", "provider")},
			{Name: "client", Status: 400, Body: []byte(`"bad"`), Want: want("client_error", "request")},
		},
		Telemetry: []plugintest.TelemetryCase{{Name: "used", Status: 200, Headers: map[string]string{"x-used": "42", "x-reset": "1767243600"},
			Want: []plugintest.Window{{ID: "1d", State: "observed", UsedPercent: number(42)}}}},
		Sessions: []plugintest.SessionCase{
			{Name: "with", Headers: map[string]string{"x-session": "s"}, Want: "s"},
			{Name: "without"},
		},
	}
}

func run(t *testing.T, fixtures plugintest.Fixtures) plugintest.Report {
	t.Helper()
	report, err := plugintest.RunCommand(t.Context(), []string{os.Args[0]}, fixtures)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func text(t *testing.T, report plugintest.Report) string {
	t.Helper()
	var out strings.Builder
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAnAdapterThatConformsPasses(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	report := run(t, sample("none"))
	if !report.Passed() {
		t.Error(text(t, report))
	}
	if report.Name != "sample" || report.Version != "1.0.0" || len(report.Checks) < 20 {
		t.Errorf("report of %q %q with %d checks", report.Name, report.Version, len(report.Checks))
	}
}

func TestADefectIsFoundByTheCheckForIt(t *testing.T) {
	tests := []struct{ defect, check, what string }{
		{"describes itself differently each time", "describe answers", "two descriptions differ"},
		{"takes the session from a header of every client", "no session is invented", `gets the session "client/1.0"`},
		{"exposes the credential", "the profile is complete", "takes in the credential header set-cookie"},
		{"exposes the credential", "the profile is complete", "takes in the credential header authorization"},
		{"has no turn", "the profile is complete", "no route of the kind turn"},
		{"has no fallback", "the profile is complete", "fallback wrong_key has the status 0"},
		{"declares no window", "the profile is complete", "neither windows nor unmetered"},
		{"has a pattern without a group", "the profile is complete", "cannot pick a value"},
		{"names the credential's header after a scheme of its own", "leases are usable", "none of the headers that the lease sets is a credential"},
		{"leases to anybody", "leases are usable", "takes no credential"},
		{"leases without a generation", "leases are usable", "lease has no generation"},
		{"tells the token in the generation", "leases are usable", "holds the credential"},
		{"changes the generation each time", "leases are usable", "two generations"},
		{"leases what has expired", "leases are usable", "has expired already"},
		{"prints the token", "no secret", "in the output"},
		{"tells the token in an error", "no secret", "in an error"},
		{"tells the token in an answer", "no secret", "in the answer of /noria.provider.v1.Provider/Classify"},
		{"takes its time", "every outcome", "DeadlineExceeded"},
		{"panics at an empty body", "hostile input", "adapter panicked"},
		{"repeats the body in the reason", "every outcome", "is no code"},
		{"blames the account for the provider's trouble", "every outcome", "overloaded with the scope account"},
		{"has no outcome for what it does not know", "hostile input", "no outcome"},
		{"mixes up calls at the same time", "calls at the same time", "otherwise than when it is called alone"},
		{"takes absent for nothing used", "telemetry shows", "an answer without telemetry shows the window 1d at 0 %"},
		{"gives unknown a percentage", "hostile input", "is unknown and has a percentage"},
		{"exhausts what it cannot read", "hostile input", "window 1d becomes exhausted"},
		{"shows a window for every number", "telemetry shows", "20 windows"},
		{"parses loosely", "hostile input", "has the percentage NaN"},
		{"believes every reset", "hostile input", "resets at"},
		{"cannot be configured again", "a configuration may come", "Configure is refused"},
		{"gives no reason", "optional services", "without a reason"},
		{"puts the key into the command line", "optional services", "puts the key into the command line"},
	}
	reports := map[string]plugintest.Report{}
	for _, test := range tests {
		t.Run(test.defect, func(t *testing.T) {
			report, done := reports[test.defect]
			if !done {
				report = run(t, sample(test.defect))
				reports[test.defect] = report
			}
			if !finds(report, test.check, test.what) {
				t.Errorf("no check %q found %q:\n%s", test.check, test.what, text(t, report))
			}
			if strings.Contains(text(t, report), token) {
				t.Error("the report holds the credential")
			}
		})
	}
}

func finds(report plugintest.Report, check, what string) bool {
	for _, c := range report.Checks {
		for _, p := range c.Problems {
			if strings.HasPrefix(c.Name, check) && strings.Contains(p.What, what) && p.Fix != "" {
				return true
			}
		}
	}
	return false
}

func TestFixturesThatSayTooLittleFail(t *testing.T) {
	tests := []struct {
		name   string
		change func(*plugintest.Fixtures)
		what   string
	}{
		{"no accounts", func(f *plugintest.Fixtures) { f.Accounts = nil }, "fixtures have no account"},
		{"nobody has a lease", func(f *plugintest.Fixtures) { f.Accounts = f.Accounts[1:] }, "no account that has a lease"},
		{"no outcome", func(f *plugintest.Fixtures) { f.Outcomes = nil }, "fixtures have no outcome throttled"},
		{"one outcome missing", func(f *plugintest.Fixtures) { f.Outcomes = f.Outcomes[1:] }, "fixtures have no outcome quota_exhausted"},
		{"no telemetry", func(f *plugintest.Fixtures) { f.Telemetry = nil }, "fixtures have no telemetry"},
		{"no request without a session", func(f *plugintest.Fixtures) { f.Sessions = f.Sessions[:1] }, "a request with a session and one without"},
		{"no secret", func(f *plugintest.Fixtures) { f.Secrets, f.Accounts = nil, f.Accounts[1:] }, "fixtures have no secret"},
		{"a name twice", func(f *plugintest.Fixtures) { f.Outcomes = append(f.Outcomes, f.Outcomes[0]) }, `the name "quota" of a case`},
		{"a header that is not exposed", func(f *plugintest.Fixtures) { f.Outcomes[0].Headers["x-other"] = "1" }, "needs the header x-other"},
		{"another outcome", func(f *plugintest.Fixtures) { f.Outcomes[0].Want.Outcome = "throttled" }, `outcome is "quota_exhausted" instead of "throttled"`},
		{"another percentage", func(f *plugintest.Fixtures) { f.Telemetry[0].Want[0].UsedPercent = number(43) }, "used 42 % instead of 43 %"},
		{"another session", func(f *plugintest.Fixtures) { f.Sessions[0].Want = "t" }, `session "s" instead of "t"`},
		{"another refusal", func(f *plugintest.Fixtures) { f.Accounts[1].Refusal = "expired" }, "refused as signed_out instead of expired"},
		{"an attribute that does not exist", func(f *plugintest.Fixtures) { f.Config = map[string]any{"nothing": 1} }, `Unknown attribute "nothing"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fixtures := sample("none")
			test.change(&fixtures)
			if report := run(t, fixtures); !finds(report, "", test.what) {
				t.Errorf("nothing found %q:\n%s", test.what, text(t, report))
			}
		})
	}
}

func TestEmptyFixturesAreTheOnlyProblemOfAnAdapterThatConforms(t *testing.T) {
	report := run(t, plugintest.Fixtures{Environment: sample("none").Environment})
	if !finds(report, "fixtures cover", "fixtures have no account") {
		t.Errorf("the fixtures are not found wanting:\n%s", text(t, report))
	}
	for _, c := range report.Checks {
		for _, p := range c.Problems {
			if !strings.HasPrefix(p.What, "fixtures ") {
				t.Errorf("%s: %s", c.Name, p.What)
			}
		}
	}
}

func TestWhatIsNoAdapterIsToldWhatIsMissing(t *testing.T) {
	script := func(body string) []string { return []string{"/bin/sh", "-c", body, "adapter"} }
	description := `{"name":"x","version":"1.0.0","provider":"x","services":["noria.plugin.v1.Plugin","noria.provider.v1.Provider"]}`
	describing := func(serve string) []string {
		return script(`if [ "$1" = describe ]; then echo '` + description + `'; elif [ -z "$NORIA_PLUGIN" ]; then echo no >&2; exit 1; else ` + serve + `; fi`)
	}
	tests := []struct {
		name    string
		command []string
		what    string
	}{
		{"does not describe itself", script("exit 3"), "describe: exit status 3"},
		{"describes itself in words", script("echo hello"), "something other than a DescribeResponse"},
		{"ends at once", describing("exit 7"), "without a handshake line"},
		{"prints a banner", describing("echo hello; sleep 5"), "handshake line has 1 fields instead of 6"},
		{"speaks another version", describing("echo '1|9|unix|/x|grpc|y'"), "the protocol version, is not 1"},
		{"listens on TCP", describing("echo '1|1|tcp|127.0.0.1:1|grpc|y'"), "the network, is not unix"},
		{"listens elsewhere", describing("echo '1|1|unix|/x|grpc|y'"), "is not inside the directory"},
		{"has no certificate", describing(`echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/x|grpc|"`), "is no certificate"},
		{"listens to nobody", describing(`echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/x|grpc|` + someCertificate + `"`), "health of the service plugin"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fixtures := sample("none")
			report, err := plugintest.RunCommand(t.Context(), test.command, fixtures)
			if err != nil {
				t.Fatal(err)
			}
			if report.Passed() || !finds(report, "", test.what) {
				t.Errorf("nothing found %q:\n%s", test.what, text(t, report))
			}
		})
	}
}

func TestTheSuiteEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := plugintest.RunCommand(ctx, []string{os.Args[0]}, sample("none")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAMisspeltFieldOfFixturesIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(file, []byte(`{"outcome": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := plugintest.RunBinary(t.Context(), os.Args[0], file); err == nil || !strings.Contains(err.Error(), `unknown field "outcome"`) {
		t.Errorf("error %v", err)
	}
}

// someCertificate is that of a server which does not exist.
const someCertificate = "MIIBljCCATugAwIBAgIUSjB125QJCkEuaHGsHzS7QV3g980wCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDA1MTU1M1oYDzIxMjYxMTA2MDUxNTUzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQLt7SAIDXYZ7xZa5NrRyCs1f/GN0EzI8rryZE1jHqyU/m9ku91xqAgBNUgwEVzYzvGmdoYrCnctqEEGSTCI++Uo2kwZzAdBgNVHQ4EFgQUm0NPEHOXPfrhOHs+xcDg+AV36A8wHwYDVR0jBBgwFoAUm0NPEHOXPfrhOHs+xcDg+AV36A8wDwYDVR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwIDSQAwRgIhAOcIcPJ3ZYMNU0YdDK5n3CFq4YUzzOm7pBUsXcmVYP5lAiEAhKJgzziJ3qDQLTIb3eKMbzvjV9upukUoS4UIW2JZypY"
