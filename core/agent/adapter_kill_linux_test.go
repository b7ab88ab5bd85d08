package agent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
	"github.com/noria-dev/noria/core/internal/upstream"
)

func TestStreamsOutliveTheirAdapter(t *testing.T) { killAdapters(t, 6, 10) }

// killAdapters ends the adapter so many times, in every way in which a process can be lost, while streams run. No stream
// may be cut, no session may move, and the daemon may not grow.
func killAdapters(t *testing.T, kills, streams int) {
	s := newScene(t, "ada", "ben", "cyn")
	goOn := make(chan struct{})
	for _, account := range s.accounts {
		s.upstream.Script(token(account), upstream.OK().HaltUntil(goOn))
	}
	d := s.Start().Ready()
	c := clientOf(d)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			status, body, err := c.turn(streamSession(i), "claude-sonnet-5")
			if err != nil || status != http.StatusOK || !strings.Contains(body, "message_stop") {
				t.Errorf("stream %d was cut: status %d, error %v", i, status, err)
			}
		})
	}
	noriatest.Eventually(t, "all streams run", func() bool { return len(s.upstream.Turns()) == streams })
	homes := s.homes()

	descriptors := descriptorsOf(t, d.PID())
	for i := range kills {
		pid := adapterPID(t, s.Home)
		signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM}[i%3]
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatalf("signal adapter %d: %v", pid, err)
		}
		if out, errs, code := s.Run("plugins", "restart", "claude"); code != 0 {
			t.Fatalf("restart after kill %d: code %d: %s%s", i, code, out, errs)
		}
		if syscall.Kill(pid, 0) == nil && adapterPID(t, s.Home) == pid {
			t.Fatalf("adapter %d still serves after it was lost", pid)
		}
	}
	noriatest.Eventually(t, "the daemon holds no more descriptors than before", func() bool {
		return descriptorsOf(t, d.PID()) <= descriptors
	})

	close(goOn)
	wg.Wait()
	s.upstream.Forget()
	for i := range streams {
		c.served(t, streamSession(i))
	}
	for session, home := range s.homes() {
		if homes[session] != home {
			t.Errorf("session %s moved from %s to %s", session, homes[session], home)
		}
	}
	if code := d.Stop(); code != 0 {
		t.Errorf("exit code %d after the campaign, want 0", code)
	}
}

// homes tells which account each session was served by upstream.
func (s *scene) homes() map[string]string {
	homes := map[string]string{}
	for _, r := range s.upstream.Turns() {
		homes[r.Session] = r.Token
	}
	return homes
}

func adapterPID(t *testing.T, h *noriatest.Home) int {
	t.Helper()
	out, errs, code := h.Run("plugins", "list", "-json")
	var plugins []api.Plugin
	if err := json.Unmarshal([]byte(out), &plugins); code != 0 || err != nil || len(plugins) != 1 {
		t.Fatalf("plugins list: code %d, error %v: %s%s", code, err, out, errs)
	}
	return plugins[0].PID
}

func descriptorsOf(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
