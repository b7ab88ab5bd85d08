//go:build e2e

package e2e

import (
	"slices"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/internal/upstream"
)

func TestSessionStaysAfterTheDaemonIsKilled(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		w.fill(c.provider(), "cyn", 96)
		session := w.promptOn(c, "cyn")
		w.daemon.kill()
		w.daemon.start()
		w.forget()
		w.prompt(c, session, "Say it again")
		if served := w.served(session); !slices.Equal(served, []string{"cyn"}) {
			t.Errorf("after the restart the session was served by %v, want cyn", served)
		}
	})
}

func TestStreamOutlivesItsAdapter(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.prompt(c, "", "Say hello").session
		account := w.boundTo(c.provider(), session)
		goOn := make(chan struct{})
		w.upstream.Script(w.named(c.provider(), account).token, upstream.OK().HaltUntil(goOn))
		w.forget()
		r := w.begin(c, session, "Say it again")
		eventually(t, "the stream reaches the client", func() bool {
			turns := w.recorder.turns()
			return len(turns) == 1 && turns[0].received > 0
		})

		adapter := w.adapterPID(c.provider())
		if err := syscall.Kill(adapter, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another adapter is ready", func() bool {
			pid := w.adapterPID(c.provider())
			return !alive(adapter) && pid != 0 && pid != adapter
		})
		if turns := w.recorder.turns(); turns[0].ended {
			t.Error("the stream ended with its adapter")
		}
		close(goOn)
		r.wait().mustHaveSaid(greeting)
		if seen := len(w.recorder.turns()); seen != 1 {
			t.Errorf("the client sent %d requests, want one", seen)
		}
		if bound := w.boundTo(c.provider(), session); bound != account {
			t.Errorf("the session is bound to %s, was to %s", bound, account)
		}
	})
}

// adapterPID is 0 while the provider's adapter is not ready.
func (w *world) adapterPID(provider string) int {
	w.Helper()
	for _, plugin := range w.plugins() {
		if plugin.Provider == provider && plugin.Status == "ready" {
			return plugin.PID
		}
	}
	return 0
}
