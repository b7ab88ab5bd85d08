package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
)

func TestTablesShowWhatTheDaemonSays(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{})
	for _, c := range []struct {
		golden string
		args   []string
		code   int
	}{
		{"status", []string{"status"}, 0},
		{"accounts", []string{"accounts", "list"}, 0},
		{"refresh", []string{"accounts", "refresh", "claude/work"}, 0},
		{"sessions", []string{"sessions", "list"}, 0},
		{"session", []string{"sessions", "show", "7f3a"}, 0},
		{"events", []string{"events"}, 0},
		{"follow", []string{"events", "-follow"}, 0},
		{"explain", []string{"explain", "7f3a"}, 0},
		{"explain-new", []string{"explain", "-new", "claude", "-model", "opus"}, 0},
		{"explain-blocked", []string{"explain", "-new", "codex"}, 3},
		{"token", []string{"token", "show"}, 0},
		{"plugins", []string{"plugins", "list"}, 0},
		{"plugins", []string{"plugins", "list", "-strict"}, 2},
		{"plugin", []string{"plugins", "info", "acme"}, 0},
		{"export", []string{"state", "export"}, 0},
	} {
		t.Run(c.golden, func(t *testing.T) {
			code, stdout, stderr := noria(t, c.args...)
			if code != c.code || stderr != "" {
				t.Errorf("exit %d, want %d: %s", code, c.code, stderr)
			}
			golden(t, c.golden, stdout)
		})
	}
}

func TestListsHaveJSON(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{})
	for _, args := range [][]string{
		{"status", "-json"}, {"accounts", "-json"}, {"accounts", "list", "--json"}, {"sessions", "-json"}, {"sessions", "list", "-json"},
		{"sessions", "show", "x", "-json"}, {"sessions", "show", "-json", "x"}, {"events", "-json"}, {"explain", "x", "-json"},
		{"token", "show", "-json"}, {"version", "-json"}, {"accounts", "enable", "a/b", "-json"}, {"reload", "-json"},
	} {
		code, stdout, stderr := noria(t, args...)
		if args[0] == "reload" && code == 78 {
			code = 0
		}
		if code != 0 || stderr != "" || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
	}
}

func TestFollowedEventsAreOneJSONObjectPerLine(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{})
	_, stdout, _ := noria(t, "events", "-follow", "-json")
	var sequences []uint64
	for line := range strings.Lines(stdout) {
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		sequences = append(sequences, e.Sequence)
	}
	if diff := cmp.Diff([]uint64{6, 7, 8, 9, 22}, sequences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNothingFromOutsideReachesTheTerminalRaw(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{hostile: true})
	for _, args := range [][]string{
		{"status"}, {"accounts"}, {"sessions"}, {"sessions", "show", "x"}, {"events"}, {"events", "-follow"}, {"explain", "x"},
		{"explain", "-new", "\x1b[2J"}, {"accounts", "enable", "claude/\x1b[2J"}, {"status", "-\x1b[2J"}, {"\x1b[2J"}, {"status", "\x1b[2J"},
	} {
		_, stdout, stderr := noria(t, args...)
		for _, r := range stdout + stderr {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q prints %U", args, r)
				break
			}
		}
	}
}

func TestExitCodesSayWhatHappened(t *testing.T) {
	inPrivateHome(t)
	d := &fakeDaemon{}
	serve(t, d)
	_, help, _ := noria(t, "-help")
	for _, c := range []struct {
		rule   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"done", []string{"accounts", "disable", "claude/work"}, 0, "claude/work is disabled.\n", ""},
		{"done, and noria.hcl is in the way", []string{"accounts", "enable", "codex/ci"}, 0, "codex/ci is still disabled: noria.hcl has enabled = false.\n", ""},
		{"done", []string{"sessions", "forget", "x"}, 0, "Forgotten.\n", ""},
		{"not found is a failure", []string{"accounts", "enable", "claude/none"}, 1, "", "Error: there is no account claude/none\n  noria accounts list shows them\n"},
		{"no account at all is usage", []string{"accounts", "enable", "work"}, 2, "", "Error: \"work\" names no account\n  write PROVIDER/NAME, as \"noria accounts list\" shows it\n"},
		{"ambiguous is usage", []string{"sessions", "show", "7"}, 2, "", "Error: 2 sessions begin with 7\n  write more of it\n"},
		{"refused", []string{"accounts", "disable", "claude/last"}, 4, "", "Error: refused\n"},
		{"a missing argument", []string{"sessions", "show"}, 2, "", "Error: sessions show wants SESSION\n  see \"noria sessions show -help\"\n"},
		{"an argument too many", []string{"status", "now"}, 2, "", "Error: unexpected argument \"now\"\n  see \"noria status -help\"\n"},
		{"a misspelt subcommand", []string{"sessions", "lst"}, 2, "", "Error: unexpected argument \"lst\"\n  see \"noria sessions -help\"\n"},
		{"an unknown flag", []string{"status", "-jsn"}, 2, "", "Error: there is no flag -jsn; did you mean -json?\n  see \"noria status -help\"\n"},
		{"a flag without its value", []string{"status", "-config"}, 2, "", "Error: flag needs an argument: -config\n  see \"noria status -help\"\n"},
		{"a flag before the command", []string{"-json", "status"}, 2, "", "Error: flag \"-json\" before the command\n  write it after the command, as in \"noria status -json\"\n"},
		{"no command", nil, 2, "", help},
		{"a misspelt command", []string{"stauts"}, 2, "", "Error: there is no command \"stauts\"\n  did you mean \"status\"?\n  \"noria -help\" lists the commands\n"},
		{"help with what is none", []string{"help", "stauts"}, 2, "", "Error: there is no command \"stauts\"\n  did you mean \"status\"?\n  \"noria -help\" lists the commands\n"},
		{"a flag like no other", []string{"status", "-nothing"}, 2, "", "Error: there is no flag -nothing\n  see \"noria status -help\"\n"},
		{"a limit in words", []string{"events", "-limit", "abc"}, 2, "", "Error: invalid value \"abc\" for flag -limit: it wants a whole number\n  see \"noria events -help\"\n"},
		{"no past and no future", []string{"events", "-limit", "0"}, 2, "", "Error: -limit must be at least 1, or 0 with -follow\n  see \"noria events -help\"\n"},
		{"a limit that is none", []string{"sessions", "-limit", "0"}, 2, "", "Error: -limit must be at least 1\n  see \"noria sessions -help\"\n"},
		{"two subjects", []string{"explain", "x", "-new", "claude"}, 2, "", "Error: name a session or -new, not both\n  see \"noria explain -help\"\n"},
	} {
		t.Run(c.rule+" "+strings.Join(c.args, " "), func(t *testing.T) {
			code, stdout, stderr := noria(t, c.args...)
			if code != c.code || stdout != c.stdout || stderr != c.stderr {
				t.Errorf("exit %d, want %d\nstdout %q\nstderr %q", code, c.code, stdout, stderr)
			}
		})
	}
	if !slices.Contains(d.noted(), "set claude/work") || !slices.Contains(d.noted(), "forget x") {
		t.Errorf("the daemon was told %q", d.noted())
	}
}

func TestWithoutADaemonCommandsSaySoAndExit69(t *testing.T) {
	inPrivateHome(t)
	for _, args := range [][]string{
		{"status"}, {"accounts"}, {"accounts", "enable", "a/b"}, {"sessions"}, {"events"}, {"explain", "x"}, {"reload"}, {"token"},
		{"run", "claude"},
	} {
		code, stdout, stderr := noria(t, args...)
		if code != 69 || stdout != "" || !strings.HasPrefix(stderr, "Error: daemon not running: nothing answers at ") ||
			!strings.Contains(stderr, `start it with "noria serve"`) {
			t.Errorf("%v: exit %d %q %q", args, code, stdout, stderr)
		}
	}
}

func TestMoveWarnsOfAnAccountThatCannotServe(t *testing.T) {
	inPrivateHome(t)
	d := &fakeDaemon{}
	serve(t, d)
	for account, want := range map[string]string{
		"claude/work": "",
		"codex/main":  "Warning: codex/main cannot serve now: out of quota (weekly) until 13:12 (in 1h12m). Until it can, a request of the session moves it to an account that can.\n",
		"codex/ci":    "Warning: codex/ci cannot serve now: off (config). Until it can, a request of the session moves it to an account that can.\n",
	} {
		code, stdout, stderr := noria(t, "sessions", "move", "7f3a", account)
		if code != 0 || stdout == "" || stderr != want {
			t.Errorf("to %s: exit %d %q, want %q", account, code, stderr, want)
		}
		if !slices.Contains(d.noted(), "move 7f3a "+account) {
			t.Errorf("the daemon was told %q", d.noted())
		}
	}
}

func TestReloadSaysWhatChangedOrWhyNot(t *testing.T) {
	inPrivateHome(t)
	d := &fakeDaemon{}
	serve(t, d)
	d.reload = api.ReloadResult{Applied: true, Generation: 3, Changes: []config.Change{
		{What: "listen", How: config.Changed, Restart: true}, {What: "provider.claude.account.work", How: config.Added},
	}}
	code, stdout, stderr := noria(t, "reload")
	want := "changed listen (takes effect when the daemon is restarted)\nadded provider.claude.account.work\nConfiguration 3 is in force.\n"
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit %d %q %q", code, stdout, stderr)
	}
	d.reload = api.ReloadResult{Applied: true, Generation: 4}
	if code, stdout, _ := noria(t, "reload"); code != 0 || stdout != "Nothing has changed.\n" {
		t.Errorf("exit %d %q", code, stdout)
	}
	d.reload = api.ReloadResult{Generation: 4, Diagnostics: config.Diagnostics{{
		Severity: config.SeverityError, Summary: "Value out of range", Detail: "refresh is between 30s and 5m.",
		Range:   &config.Range{File: "noria.hcl", StartLine: 2, StartColumn: 13, EndLine: 2, EndColumn: 18},
		Snippet: &config.Snippet{Context: "telemetry", Line: `  refresh = "10s"`, Start: 12, End: 17},
	}}}
	code, stdout, stderr = noria(t, "reload")
	if code != 78 || stdout != "" {
		t.Errorf("exit %d %q", code, stdout)
	}
	golden(t, "reload-refused", stderr)
}

func TestHelpHasUsageFlagsAndAnExample(t *testing.T) {
	inPrivateHome(t)
	code, stdout, _ := noria(t, "-help")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	golden(t, "help", stdout)
	for _, args := range [][]string{{"help"}, {"--help"}, {"-h"}} {
		if code, same, _ := noria(t, args...); code != 0 || same != stdout {
			t.Errorf("%v: exit %d %q", args, code, same)
		}
	}
	for name, args := range map[string][]string{"help-config": {"help", "config"}, "help-explain": {"explain", "-help"}, "help-fmt": {"help", "config", "fmt"}} {
		_, stdout, _ := noria(t, args...)
		golden(t, name, stdout)
	}
	for line := range strings.Lines(stdout) {
		name, _, listed := strings.Cut(strings.TrimSpace(line), "  ")
		if !listed {
			continue
		}
		for _, args := range [][]string{{name, "-help"}, {name, "--help"}, {name, "-h"}, {"help", name}} {
			code, stdout, stderr := noria(t, args...)
			if code != 0 || stderr != "" || !strings.HasPrefix(stdout, "Usage: noria "+name) ||
				!strings.Contains(stdout, "\n  $ noria ") || !strings.Contains(stdout, "-config FILE") {
				t.Errorf("%v: exit %d %q %q", args, code, stdout, stderr)
			}
		}
	}
}

func TestVersionAsksNoDaemon(t *testing.T) {
	inPrivateHome(t)
	for _, args := range [][]string{{"version"}, {"-version"}, {"--version"}, {"-v"}} {
		code, stdout, _ := noria(t, args...)
		if code != 0 || !strings.HasPrefix(stdout, "noria 0.1.0 (control API v1, ") {
			t.Errorf("%v: exit %d %q", args, code, stdout)
		}
	}
}

func TestAConfigurationThatIsNotThereNamesNoDaemon(t *testing.T) {
	inPrivateHome(t)
	d := &fakeDaemon{}
	serve(t, d)
	for _, args := range [][]string{
		{"status", "-config", "none.hcl"}, {"accounts", "disable", "claude/work", "-config", "none.hcl"}, {"plugins", "-config", "."},
	} {
		if code, stdout, stderr := noria(t, args...); code != 78 || stdout != "" || !strings.Contains(stderr, args[len(args)-1]) {
			t.Errorf("%v: exit %d %q %q", args, code, stdout, stderr)
		}
	}
	if told := d.noted(); len(told) != 0 {
		t.Errorf("the daemon of another configuration was told %q", told)
	}
}

func TestDoctorTellsOfProvidersThatCannotServe(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{})
	_, stdout, stderr := noria(t, "doctor")
	line := strings.Join(strings.Fields(stdout), " ")
	if !strings.Contains(line, "provider codex warning no account can serve: 1 disabled, 1 out of quota codex/main can serve again from ") {
		t.Errorf("doctor does not tell of codex:\n%s%s", stdout, stderr)
	}
	if strings.Contains(line, "provider claude") {
		t.Errorf("doctor finds fault with a provider that serves:\n%s", stdout)
	}
}
