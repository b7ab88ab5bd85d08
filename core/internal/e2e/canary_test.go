//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// checkCanaries looks for the secret part of every credential in all that the daemon wrote, printed or answers, in the
// processes' command lines and environments, and in the homes of the clients.
func (w *world) checkCanaries() {
	w.Helper()
	for _, folder := range []string{"daemon", "client"} {
		w.checkFolder(w.path(folder))
	}
	if w.daemon.ended() {
		return // a test that failed early
	}
	for _, command := range []string{
		"status", "sessions list", "accounts list", "plugins list", "plugins info claude", "plugins info codex", "events",
	} {
		text := w.noria(append(strings.Fields(command), "-json")...)
		w.checkText("noria "+command, []byte(text))
		if command == "events" && strings.Contains(text, `"unlisted"`) {
			w.Errorf("an event has a word that is on no list:\n%s", text)
		}
	}
	w.checkText("the metrics", w.metrics())
	for _, plugin := range w.plugins() {
		w.checkProcess(plugin.PID)
	}
	w.checkProcess(w.daemon.process.Process.Pid)
	for _, e := range w.recorder.all() {
		for name, values := range e.header {
			w.checkText("response header "+name, []byte(strings.Join(values, "\n")))
		}
	}
}

// metrics reads them at the control socket.
func (w *world) metrics() []byte {
	w.Helper()
	socket := w.path("daemon", "state", "control.sock")
	control := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	answer, err := control.Get("http://control/metrics")
	if err != nil {
		w.Errorf("read metrics: %v", err)
		return nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(text, []byte("noria_requests_total")) {
		w.Errorf("read metrics: status %d, error %v", answer.StatusCode, err)
	}
	return text
}

func (w *world) checkFolder(root string) {
	w.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreGone(err)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			w.checkText(path, text)
		}
		return ignoreGone(err)
	})
	if err != nil {
		w.Error(err)
	}
}

// ignoreGone: clients and daemon go on while they are looked at.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func (w *world) checkProcess(pid int) {
	w.Helper()
	if pid == 0 {
		return
	}
	for _, what := range []string{"cmdline", "environ"} {
		path := fmt.Sprintf("/proc/%d/%s", pid, what)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // ended, or kept from reading by the kernel
		}
		w.checkText(path, text)
	}
}

func (w *world) checkText(where string, text []byte) {
	w.Helper()
	for _, canary := range w.canaries {
		if bytes.Contains(text, []byte(canary)) {
			w.Errorf("a credential is in %s", where)
		}
	}
}
