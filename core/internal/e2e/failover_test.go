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

func TestSessionMovesOnceWhenItsAccountIsRejected(t *testing.T) {
	rejections := map[string]func(resetsAt time.Time) upstream.Behaviour{
		"by status":                  func(resetsAt time.Time) upstream.Behaviour { return upstream.Quota("five_hour", resetsAt) },
		"by an early error in a 200": upstream.EarlyError,
	}
	for how, rejection := range rejections {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, w *world, c client) { movesOnce(t, w, c, rejection) })
		})
	}
}

func movesOnce(t *testing.T, w *world, c client, rejection func(time.Time) upstream.Behaviour) {
	old := w.named(c.provider(), "ben")
	session := w.promptOn(c, old.name)

	w.forget()
	// Long enough to see the account blocked, short enough to see it recover.
	resetsAt := time.Now().Add(12 * time.Second).Truncate(time.Second)
	w.upstream.SetUsage(old.token, upstream.Usage{FiveHour: 97, Weekly: 10, FiveHourResetsAt: resetsAt})
	w.upstream.Script(old.token, rejection(resetsAt))
	w.prompt(c, session, "Say it again")
	seen := w.recorder.turns()
	if len(seen) != 1 || seen[0].status != http.StatusOK {
		t.Errorf("the client saw %d answers, the first of status %d, want one 200", len(seen), seen[0].status)
	}
	served := w.served(session)
	if len(served) != 2 || served[0] != old.name || served[1] == old.name {
		t.Fatalf("served by %v, want ben and then another", served)
	}
	moved := served[1]
	if bound := w.boundTo(c.provider(), session); bound != moved {
		t.Errorf("the session is bound to %s, want %s, which served it", bound, moved)
	}
	w.sameBodiesTwice()

	w.upstream.Script(old.token, upstream.OK())
	w.upstream.SetUsage(old.token, upstream.Usage{FiveHour: 1, Weekly: 10})
	eventually(t, "the old account recovers", func() bool { return w.account(c.provider(), old.name).Usable })
	w.forget()
	w.prompt(c, session, "And once more")
	if served := w.served(session); !slices.Equal(served, []string{moved}) {
		t.Errorf("after the old account recovered the session was served by %v, want %s", served, moved)
	}
}

// sameBodiesTwice checks that both attempts of the client's one request carried the body that it sent.
func (w *world) sameBodiesTwice() {
	w.Helper()
	sent := w.recorder.turns()[0].sum
	for _, request := range w.upstream.Turns() {
		if request.BodySHA256 != sent {
			w.Errorf("an attempt arrived with body %s, the client sent %s", request.BodySHA256, sent)
		}
	}
}

func TestClientsStopAtOnceWhenEveryAccountIsExhausted(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		// No full hour, which clients write shorter.
		earliest := time.Now().UTC().Truncate(time.Hour).Add(2*time.Hour + 37*time.Minute)
		for i, a := range w.of(c.provider()) {
			w.upstream.Script(a.token, upstream.Quota("five_hour", earliest.Add(time.Duration(2-i)*20*time.Minute)))
		}
		r := w.begin(c, "", "Say hello").wait()
		t.Logf("the client says: %s", r.said)
		if r.code == 0 || r.code == -1 {
			t.Errorf("the client exited with %d, want a failure of its own", r.code)
		}
		if !strings.Contains(r.said, c.clock(earliest)) {
			t.Errorf("the client said %q, want the time %s", r.said, c.clock(earliest))
		}
		seen := w.recorder.turns()
		if len(seen) != 1 || seen[0].status != http.StatusTooManyRequests {
			t.Fatalf("the client sent %d requests, the first answered %d; want one, answered 429", len(seen), seen[0].status)
		}
		if tried := w.served(seen[0].session); len(tried) > len(accountNames) || len(tried) != len(unique(tried)) {
			t.Errorf("accounts tried: %v, want each at most once", tried)
		}
		if sentence := seen[0].header.Get("X-Codex-Promo-Message"); c.provider() == "codex" && (sentence == "" || !strings.Contains(r.said, sentence)) {
			t.Errorf("the client said %q, our sentence is %q", r.said, sentence)
		}

		w.forget()
		w.begin(c, "", "Say hello").wait()
		if asked := len(w.upstream.Turns()); asked != 0 {
			t.Errorf("with every account blocked the upstream was asked %d times more", asked)
		}
		if seen := w.recorder.turns(); len(seen) != 1 {
			t.Errorf("the client sent %d requests, want one", len(seen))
		}
	})
}

func unique(names []string) []string {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// After the first output nothing is taken back: the client sees the error, and its own next request is placed anew.
func TestQuotaErrorAfterTheFirstOutputMovesTheClientsNextRequest(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.promptOn(c, "ben")
		w.forget()
		w.upstream.Script(w.named(c.provider(), "ben").token, upstream.LateError(time.Now().Add(time.Hour)))
		w.prompt(c, session, "Say it again")
		served := w.served(session)
		if len(served) != 2 || served[0] != "ben" || served[1] == "ben" {
			t.Fatalf("served by %v, want ben and then another", served)
		}
		if seen := w.recorder.turns(); len(seen) != 2 || seen[0].status != http.StatusOK || seen[1].status != http.StatusOK {
			t.Errorf("the client sent %d requests, want the one that broke and the one after it", len(seen))
		}
		if bound := w.boundTo(c.provider(), session); bound != served[1] {
			t.Errorf("the session is bound to %s, want %s", bound, served[1])
		}
	})
}
