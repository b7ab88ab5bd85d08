//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
)

// What the clients do while the upstream cannot be reached: they ask again by themselves, as often as they would have
// without the daemon, and say in the end what the trouble is.

// mostRequests of a client for one prompt. Claude Code would ask for three minutes; it is told to give up before.
var mostRequests = map[string]int{"claude": 3, "codex": 6}

// beginImpatient starts a client that asks again as often as mostRequests allows.
func (w *world) beginImpatient(c client, resume, text string) *run {
	w.Helper()
	environment, before := c.behind(w.recorder.url+"/"+c.provider(), w.key)
	return w.launch(c, absolute(w.T, clients, c.provider()), append(before, c.arguments(resume, text)...),
		append(environment, "CLAUDE_CODE_MAX_RETRIES=2"))
}

func TestClientsBridgeAFailureOfTheNetworkByThemselves(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.promptOn(c, "ben")
		w.forget()
		w.upstream.Script(w.named(c.provider(), "ben").token, upstream.CutBeforeStatus(), upstream.CutBeforeStatus(), upstream.OK())
		w.prompt(c, session, "Say it again")
		if served := w.served(session); !slices.Equal(served, []string{"ben", "ben", "ben"}) {
			t.Errorf("served by %v, want ben alone", served)
		}
		if bound := w.boundTo(c.provider(), session); bound != "ben" {
			t.Errorf("the session is bound to %s", bound)
		}
		// One of the three may be the daemon's own, on a fresh connection in place of an idle one.
		if seen := w.recorder.turns(); len(seen) < 2 || seen[len(seen)-1].status != http.StatusOK {
			t.Errorf("the client sent %d requests, want that it asks again and is served", len(seen))
		}
	})
}

func TestClientsSayThatTheNetworkFailed(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.promptOn(c, "ben")
		w.upstream.Close()
		for name, resume := range map[string]string{"a new session": "", "a session that is bound": session} {
			w.recorder.forget()
			r := w.beginImpatient(c, resume, "Say hello").wait()
			t.Logf("%s: the client says: %s", name, r.said)
			if sentence := "Noria could not reach the " + c.provider() + " service over the network"; r.code == 0 || !strings.Contains(r.said, sentence) {
				t.Errorf("%s: the client exited with %d and said %q, want %q", name, r.code, r.said, sentence)
			}
			if seen := w.recorder.turns(); len(seen) < 2 || len(seen) > mostRequests[c.provider()] {
				t.Errorf("%s: the client sent %d requests, want that it asks again and no storm", name, len(seen))
			}
		}
		if bound := w.boundTo(c.provider(), session); bound != "ben" {
			t.Errorf("the session is bound to %s", bound)
		}
	})
}

func TestClientsTakeTheNetworkForNoUsageLimit(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		for _, a := range w.of(c.provider()) {
			w.upstream.Script(a.token, upstream.CutBeforeStatus())
		}
		w.upstream.Script(w.named(c.provider(), "ada").token, upstream.Quota("five_hour", time.Now().Add(2*time.Hour)))
		r := w.beginImpatient(c, "", "Say hello").wait()
		t.Logf("the client says: %s", r.said)
		if r.code == 0 || !strings.Contains(r.said, "1 has used up its quota, 2 cannot reach the service over the network") {
			t.Errorf("the client exited with %d and said %q, want both causes", r.code, r.said)
		}
		for _, word := range []string{"hit your", "usage limit"} {
			if strings.Contains(r.said, word) {
				t.Errorf("the client takes it for a usage limit: %q", r.said)
			}
		}
		if seen := w.recorder.turns(); len(seen) > mostRequests[c.provider()] {
			t.Errorf("the client sent %d requests, want no storm", len(seen))
		}
	})
}
