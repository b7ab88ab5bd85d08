package cli_test

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/cli"
)

// script is a plan whose client is a shell script.
func script(text string) api.LaunchPlan {
	return api.LaunchPlan{
		Argv:        []string{"/bin/sh", "-c", text, "client", "--base={{base_url}}", "{{args}}", "--last"},
		Environment: map[string]string{"CLIENT_KEY": "Bearer {{key}}", "CLIENT_URL": "{{base_url}}/v1", "NO_PROXY": "{{no_proxy}}"},
		Unset:       []string{"CLIENT_OLD"},
	}
}

func TestRunStartsTheClientWithItsKeyInTheEnvironmentOnly(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("CLIENT_OLD", "old")
	t.Setenv("CLIENT_KEY", "old")
	t.Setenv("NO_PROXY", "one.example")
	d := &fakeDaemon{plan: script(`printf '%s\n' "$@"; echo "$CLIENT_KEY $CLIENT_URL $NO_PROXY ${CLIENT_OLD-unset}"; cat`)}
	serve(t, d)
	p := &cli.Program{Stdin: strings.NewReader("from the terminal\n")}
	code, stdout, stderr := noriaWith(t, p, "run", "claude", "--",
		"-p", "a prompt", "--settings", "mine.json", "--settings={}", "--", "--settings", "not a flag")
	want := `--base=http://127.0.0.1:4517/claude
-p
a prompt
--
--settings
not a flag
--last
Bearer made-up-run-key http://127.0.0.1:4517/claude/v1 one.example,127.0.0.1,::1,localhost unset
from the terminal
`
	if code != 0 || stderr != "" {
		t.Errorf("exit %d %q", code, stderr)
	}
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"seen --settings mine.json", "seen --settings {}", "key made", "revoked id"}, d.noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunEndsAsTheClientEnds(t *testing.T) {
	inPrivateHome(t)
	for _, c := range []struct {
		rule, script string
		code         int
	}{
		{"well", "exit 0", 0},
		{"with its exit code", "exit 42", 42},
		{"killed", "kill -KILL $$", 128 + int(syscall.SIGKILL)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inPrivateHome(t)
			d := &fakeDaemon{plan: script(c.script)}
			serve(t, d)
			if code, _, stderr := noria(t, "run", "claude"); code != c.code || stderr != "" {
				t.Errorf("exit %d, want %d: %q", code, c.code, stderr)
			}
			if !slices.Contains(d.noted(), "revoked id") {
				t.Error("the key of the run was not revoked")
			}
		})
	}
}

func TestRunHandsSignalsToTheClient(t *testing.T) {
	inPrivateHome(t)
	d := &fakeDaemon{plan: script(`trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done`)}
	serve(t, d)
	ready, out := io.Pipe()
	signalled := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(ready).ReadString('\n')
		if err == nil {
			err = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}
		signalled <- err
	}()
	p := &cli.Program{Stdin: strings.NewReader(""), Stdout: out}
	code := p.Main([]string{"run", "claude"})
	if err := <-signalled; err != nil {
		t.Error(err)
	}
	out.Close()
	if code != 7 {
		t.Errorf("exit %d, want 7", code)
	}
	if !slices.Contains(d.noted(), "revoked id") {
		t.Error("the key of the run was not revoked")
	}
}

func TestRunRefusesBeforeAnythingStarts(t *testing.T) {
	for _, c := range []struct {
		rule string
		plan api.LaunchPlan
		args []string
		code int
		says string
	}{
		{"no provider", script(""), []string{"run"}, 2, "run wants PROVIDER"},
		{"a flag of the client before --", script(""), []string{"run", "claude", "--resume"}, 2, "itself after --"},
		{"an argument of the client before --", script(""), []string{"run", "claude", "exec"}, 2, "itself after --"},
		{"a provider without a client", script(""), []string{"run", "acme"}, 1, "does not start a client"},
		{"a client that is not installed", api.LaunchPlan{Argv: []string{"no-such-client", "{{args}}"}}, []string{"run", "claude"}, 1, "put it into PATH"},
		{"a key among the arguments", api.LaunchPlan{Argv: []string{"sh", "{{key}}", "{{args}}"}}, []string{"run", "claude"}, 1, "cannot be used"},
		{"no place for arguments", api.LaunchPlan{Argv: []string{"sh"}}, []string{"run", "claude"}, 1, "cannot be used"},
		{"two places for arguments", api.LaunchPlan{Argv: []string{"sh", "{{args}}", "{{args}}"}}, []string{"run", "claude"}, 1, "cannot be used"},
		{"no program", api.LaunchPlan{Argv: []string{"{{args}}"}}, []string{"run", "claude"}, 1, "cannot be used"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inPrivateHome(t)
			d := &fakeDaemon{plan: c.plan}
			serve(t, d)
			code, stdout, stderr := noria(t, c.args...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit %d, want %d: %q %q", code, c.code, stdout, stderr)
			}
			if notes := d.noted(); slices.Contains(notes, "key made") != slices.Contains(notes, "revoked id") {
				t.Errorf("a key was left behind: %q", notes)
			}
		})
	}
}
