//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
)

// terminal is an official client in its interactive mode, in a tmux of its own.
type terminal struct {
	*world
	// ready is on the screen when the client takes a prompt.
	ready string
}

// openTerminal starts the client without a prompt.
func (w *world) openTerminal(c client) *terminal {
	w.Helper()
	t := &terminal{world: w, ready: "❯"}
	if c.provider() == "codex" {
		t.ready = "›"
	}
	environment, arguments := c.behind(w.recorder.url+"/"+c.provider(), w.key)
	command := append([]string{absolute(w.T, clients, c.provider())}, arguments...)
	for i := range command {
		command[i] = "'" + strings.ReplaceAll(command[i], "'", `'\''`) + "'"
	}
	// What the client leaves on the screen stays readable until the test ends.
	script := "cd '" + w.workspace() + "' && " + strings.Join(command, " ") + "; exec cat"
	t.tmux(environment, "new-session", "-d", "-x", "120", "-y", "40", "-s", "client", script)
	leader := strings.TrimSpace(t.tmux(nil, "display-message", "-p", "-t", "client", "#{pane_pid}"))
	w.Cleanup(func() {
		t.tmux(nil, "kill-server")
		eventually(w.T, "the client leaves with its terminal", func() bool { return !sessionLives(leader) })
	})
	return t
}

// sessionLives reports whether a process of that terminal session is left.
func sessionLives(leader string) bool {
	// Nothing to be read is a process that has just ended.
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		// The name in parentheses may hold anything; state, parent, group and session follow it.
		_, after, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		if fields := strings.Fields(after); len(fields) > 3 && fields[3] == leader {
			return true
		}
	}
	return false
}

// tmux runs one command at the terminal's own server.
func (t *terminal) tmux(environment []string, arguments ...string) string {
	t.Helper()
	command := exec.Command("tmux", append([]string{"-u", "-S", t.path("client", "tmux"), "-f", os.DevNull}, arguments...)...)
	command.Env = append(t.isolated(), environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %s: %v\n%s", arguments[0], err, out)
	}
	return string(out)
}

func (t *terminal) screen() string { return t.tmux(nil, "capture-pane", "-p", "-t", "client") }

// await waits until a text is on the screen.
func (t *terminal) await(text string) {
	t.Helper()
	var screen string
	deadline := time.After(patience)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if screen = t.screen(); strings.Contains(screen, text) {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited %v in vain for %q on the screen:\n%s", patience, text, screen)
		}
	}
}

// enter types a line and sends it off when it is on the screen.
func (t *terminal) enter(line string) {
	t.Helper()
	t.tmux(nil, "send-keys", "-t", "client", "-l", line)
	t.await(line)
	t.tmux(nil, "send-keys", "-t", "client", "Enter")
}

// A title is asked for by its own kind of work (Codex), or without the tools of the work itself, which makes it far
// smaller (Claude Code, whose first probe of the quota is smaller still).
const (
	claudeProbe = 1 << 10
	claudeTitle = 16 << 10
)

func isTitle(request upstream.Request) bool {
	if strings.HasSuffix(request.Path, "/responses") {
		return strings.Contains(request.Header.Get("X-Codex-Turn-Metadata"), `"thread_source":"thread_title"`)
	}
	return request.BodyBytes > claudeProbe && request.BodyBytes < claudeTitle
}

func isMain(request upstream.Request) bool {
	return !isTitle(request) && request.BodyBytes > claudeTitle
}

func titles(requests []upstream.Request) (count int) {
	for _, request := range requests {
		if isTitle(request) {
			count++
		}
	}
	return count
}

func mains(requests []upstream.Request) (found []upstream.Request) {
	for _, request := range requests {
		if isMain(request) {
			found = append(found, request)
		}
	}
	return found
}
