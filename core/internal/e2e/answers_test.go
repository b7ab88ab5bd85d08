//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/internal/upstream"
)

// What the clients show when nothing but a person can help: our sentence, at once.

func TestClientsShowThatNobodyIsSignedIn(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		for _, a := range w.of(c.provider()) {
			for _, login := range []string{".credentials.json", "auth.json"} {
				if err := os.RemoveAll(a.home + "/" + login); err != nil {
					t.Fatal(err)
				}
			}
			w.upstream.Script(a.token, upstream.Unauthorized())
		}
		// Leases of logins that are gone are dropped with the daemon.
		w.daemon.kill()
		w.daemon.start()
		w.forget()
		r := w.begin(c, "", "Say hello").wait()
		t.Logf("the client says: %s", r.said)
		if r.code == 0 || !strings.Contains(r.said, "signed out") {
			t.Errorf("the client exited with %d and said %q, want that the accounts are signed out", r.code, r.said)
		}
		seen := w.recorder.turns()
		if len(seen) != 1 || seen[0].status == http.StatusUnauthorized || seen[0].status == http.StatusForbidden {
			t.Errorf("the client sent %d requests, answered %d at last; want one, and no refusal of its own login", len(seen), seen[len(seen)-1].status)
		}
		if asked := len(w.upstream.Turns()); asked != 0 {
			t.Errorf("the upstream was asked %d times without a login", asked)
		}
	})
}

func TestUpstreamsRefusalOfALoginNeverReachesTheClient(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.promptOn(c, "ada")
		w.forget()
		w.upstream.Script(w.named(c.provider(), "ada").token, upstream.Unauthorized())
		w.prompt(c, session, "Say it again")
		if seen := w.recorder.turns(); len(seen) != 1 || seen[0].status != http.StatusOK {
			t.Errorf("the client saw %d answers, the first of status %d, want one 200", len(seen), seen[0].status)
		}
		if bound := w.boundTo(c.provider(), session); bound == "ada" {
			t.Error("the session is still bound to the account whose login was refused")
		}
	})
}

func TestClientsShowThatTheirKeyIsWrong(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		w.prompt(c, "", "Say hello")
		w.forget()
		w.key = "not-the-key"
		r := w.begin(c, "", "Say hello").wait()
		t.Logf("the client says: %s", r.said)
		if r.code == 0 || !strings.Contains(r.said, "key") {
			t.Errorf("the client exited with %d and said %q, want that the key is wrong", r.code, r.said)
		}
		if seen := w.recorder.turns(); len(seen) > 2 {
			t.Errorf("the client sent %d requests, want no storm", len(seen))
		}
		if asked := len(w.upstream.Turns()); asked != 0 {
			t.Errorf("the upstream was asked %d times without a key", asked)
		}
	})
}
