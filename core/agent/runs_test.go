package agent_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// run is a client behind the daemon that does nothing until its standard input ends.
type run struct {
	runner *exec.Cmd
	stdin  io.Closer
	// key that the client got.
	key string
}

var runKeyPattern = regexp.MustCompile(`noria_run_[A-Za-z0-9_-]+`)

// startRun starts noria run with an official client that tells its environment.
func (s *scene) startRun(name string) *run {
	s.Helper()
	told := s.Path(name + ".env")
	r := &run{runner: s.Command("run", "claude", "--", told)}
	var err error
	if r.stdin, err = r.runner.StdinPipe(); err != nil {
		s.Fatal(err)
	}
	if err := r.runner.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = r.stdin.Close()
		_ = r.runner.Wait()
	})
	noriatest.Eventually(s, "the client has started", func() bool {
		environment, err := os.ReadFile(told)
		r.key = runKeyPattern.FindString(string(environment))
		return err == nil
	})
	if r.key == "" {
		s.Fatal("the client got no key")
	}
	return r
}

func (r *run) kill(t *testing.T) {
	t.Helper()
	if err := r.runner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.runner.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
}

// clientScene is a scene whose official client tells its environment.
func clientScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, "ada")
	client := s.Write("client", "#!/bin/sh\nenv > \"$1.part\" && mv \"$1.part\" \"$1\"\nexec cat\n")
	if err := os.Chmod(client, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Write("noria.hcl", fmt.Sprintf("%sprovider \"claude\" {\n  upstream = %q\n  client = %q\n%s}\n", hostConfiguration, s.upstream.URL, client, s.account("ada")))
	return s
}

// accepts reports whether the daemon takes a key.
func accepts(t *testing.T, d *noriatest.Daemon, key string) bool {
	t.Helper()
	c := clientOf(d)
	c.key = key
	status, body, err := c.turn("", "claude-sonnet-5")
	if err != nil || status != http.StatusOK && status != http.StatusUnauthorized {
		t.Fatalf("status %d, error %v: %s", status, err, body)
	}
	return status == http.StatusOK
}

func TestAKeyEndsWithTheRunThatWasKilled(t *testing.T) {
	s := clientScene(t)
	d := s.Start().Ready()
	killed, other := s.startRun("killed"), s.startRun("other")
	if runs := asked[api.Token](s, "token", "show").Runs; len(runs) != 2 || runs[0].PID != killed.runner.Process.Pid || runs[0].Provider != "claude" {
		t.Errorf("runs %+v", runs)
	}
	killed.kill(t)
	noriatest.Eventually(t, "its key has ended", func() bool { return !accepts(t, d, killed.key) })
	if !accepts(t, d, other.key) {
		t.Error("the key of another run ended with it")
	}
	if runs := asked[api.Token](s, "token", "show").Runs; len(runs) != 1 || runs[0].PID != other.runner.Process.Pid {
		t.Errorf("runs %+v", runs)
	}
	_, stderr, _ := d.Run("token", "show")
	if want := fmt.Sprintf("claude, pid %d, for", other.runner.Process.Pid); !strings.Contains(stderr, want) {
		t.Errorf("%q is not told: %q", want, stderr)
	}
}

func TestKeysOutliveADaemonAndNotTheirRuns(t *testing.T) {
	s := clientScene(t)
	d := s.Start().Ready()
	killed, lives := s.startRun("killed"), s.startRun("lives")
	d.Kill()
	killed.kill(t)
	d = s.Start().Ready()
	if accepts(t, d, killed.key) {
		t.Error("a run that was killed while no daemon ran has a key")
	}
	if !accepts(t, d, lives.key) {
		t.Error("a run lost its key with the daemon")
	}
	if err := lives.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lives.runner.Wait(); err != nil {
		t.Fatal(err)
	}
	if accepts(t, d, lives.key) {
		t.Error("the key is there after its run has ended")
	}
}

func TestRotationTellsOfRunsAndEndsThemWhenAsked(t *testing.T) {
	s := clientScene(t)
	d := s.Start().Ready()
	r := s.startRun("run")
	before := asked[api.Token](s, "token", "show").Key
	rotated := asked[api.Token](s, "token", "rotate")
	if len(rotated.Runs) != 1 || rotated.Ended != 0 || !accepts(t, d, r.key) || accepts(t, d, before) || !accepts(t, d, rotated.Key) {
		t.Errorf("after a rotation: %+v", rotated)
	}
	if all := asked[api.Token](s, "token", "rotate", "-runs"); len(all.Runs) != 0 || all.Ended != 1 || accepts(t, d, r.key) {
		t.Errorf("after a rotation of all: %+v", all)
	}
}
