//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/upstream"
)

func TestFirstPromptIsServedAndBound(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		r := w.prompt(c, "", "Say hello")
		served := w.served(r.session)
		if len(served) != 1 || w.boundTo(c.provider(), r.session) != served[0] {
			t.Errorf("served by %v, bound to %s", served, w.boundTo(c.provider(), r.session))
		}
		for _, request := range w.upstream.Turns() {
			if request.Session != r.session {
				t.Errorf("the upstream saw session %s, the client says %s", request.Session, r.session)
			}
		}
	})
}

func TestNoriaRunStartsTheClientBehindTheDaemon(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		r := w.noriaRun(c, c.arguments("", "Say hello"))
		if served := w.served(r.session); len(served) != 1 || w.boundTo(c.provider(), r.session) != served[0] {
			t.Errorf("served by %v, bound to %s", served, w.boundTo(c.provider(), r.session))
		}
	})
}

// noriaRun does a prompt through noria run, which must be answered.
func (w *world) noriaRun(c client, arguments []string) *run {
	w.Helper()
	all := append([]string{"run", c.provider(), "--"}, arguments...)
	// Which daemon is meant: the same file and runtime directory. All else is the client's own.
	r := w.launch(c, absolute(w.T, binaries, "noria"), all, []string{
		"NORIA_CONFIG=" + w.daemon.config(), "XDG_RUNTIME_DIR=" + w.folder("daemon", "run"),
	}).wait()
	r.mustHaveSaid(greeting)
	return r
}

// signInCodex gives the client a login of its own, which belongs to none of the accounts.
func (w *world) signInCodex() {
	w.Helper()
	w.write(w.path("client", "codex", "auth.json"), w.json(map[string]any{
		"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "last_refresh": time.Now().UTC().Format(time.RFC3339),
		"tokens": map[string]any{
			"id_token": webToken("own", "client"), "access_token": webToken("own", "client"), "refresh_token": "own", "account_id": "acct_own",
		},
	}))
}

// codexBackend keeps the account calls that the client makes for itself on loopback.
func (w *world) codexBackend() []string {
	return []string{"-c", "chatgpt_base_url=" + quoted(w.upstream.URL+"/backend-api")}
}

func TestResumedSessionStaysThoughAnotherAccountHasMoreRoom(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		w.fill(c.provider(), "cyn", 96)
		session := w.promptOn(c, "cyn")
		// The others have been used as well, so that the daemon knows of the room on them.
		w.promptOn(c, "ada")
		w.promptOn(c, "ben")
		w.knows(c.provider(), "cyn", 96)
		w.knows(c.provider(), "ada", 10)
		w.knows(c.provider(), "ben", 10)

		w.forget()
		w.prompt(c, session, "Say it again")
		w.prompt(c, session, "And once more")
		if served := w.served(session); !slices.Equal(served, []string{"cyn", "cyn"}) {
			t.Errorf("the resumed session was served by %v, want cyn", served)
		}
		if bound := w.boundTo(c.provider(), session); bound != "cyn" {
			t.Errorf("the session is bound to %s, want cyn", bound)
		}
		fresh := w.prompt(c, "", "Say hello")
		if bound := w.boundTo(c.provider(), fresh.session); bound == "cyn" {
			t.Error("a new session was placed on the account without room")
		}
	})
}

// knows waits until the daemon shows all windows of an account used so far.
func (w *world) knows(provider, name string, percent float64) {
	w.Helper()
	eventually(w.T, "the daemon knows what is used of "+provider+"/"+name, func() bool {
		windows := w.account(provider, name).Windows
		return len(windows) > 0 && !slices.ContainsFunc(windows, func(window api.Window) bool {
			return window.UsedPercent == nil || *window.UsedPercent < percent-1 || *window.UsedPercent > percent+3
		})
	})
}

func TestBodiesReachTheUpstreamAsTheyLeftTheClient(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		session := w.prompt(c, "", "Say hello").session
		w.prompt(c, session, "Say it again")
		w.sameBodies("")
	})
}

func TestCompressedBodiesReachTheUpstreamAsTheyLeftTheClient(t *testing.T) {
	w := newWorld(t)
	// Codex compresses bodies when it is signed in itself and only its base URL is another.
	w.signInCodex()
	arguments := slices.Concat(
		[]string{"-c", "openai_base_url=" + quoted(w.recorder.url+"/k/"+w.key+"/codex")},
		w.codexBackend(), codex{}.arguments("", "Say hello"),
	)
	r := w.launch(codex{}, absolute(t, clients, "codex"), arguments, nil).wait()
	r.mustHaveSaid(greeting)
	w.sameBodies("zstd")
	if !slices.ContainsFunc(w.recorder.all(), func(e exchange) bool { return e.upgrade && e.status == 426 }) {
		t.Error("the client's WebSocket was not answered 426")
	}
}

// sameBodies checks that the turns which the clients sent and those which the upstream got are the same, byte for byte.
func (w *world) sameBodies(encoding string) {
	w.Helper()
	var left, arrived []string
	for _, e := range w.recorder.turns() {
		left = append(left, e.sum)
		if e.encoding != encoding {
			w.Errorf("body left the client with encoding %q, want %q", e.encoding, encoding)
		}
	}
	for _, request := range w.upstream.Turns() {
		arrived = append(arrived, request.BodySHA256)
		if got := request.Header.Get("Content-Encoding"); got != encoding {
			w.Errorf("body reached the upstream with encoding %q, want %q", got, encoding)
		}
	}
	slices.Sort(left)
	slices.Sort(arrived)
	if len(left) == 0 || !slices.Equal(left, arrived) {
		w.Errorf("bodies left as %v and arrived as %v", left, arrived)
	}
}

func TestInteractiveStartEndsOnOneAccount(t *testing.T) {
	each(t, func(t *testing.T, w *world, c client) {
		// Claude Code's requests belong to one session and follow each other whatever the accounts are like: here all are
		// alike. Codex asks for its title in a session of its own, which nothing ties to the other: it ends on the same
		// account because that one has the room.
		used := map[string]float64{"ada": 10, "ben": 10, "cyn": 10}
		if c.provider() == "codex" {
			used = map[string]float64{"ada": 97, "ben": 97, "cyn": 10}
		}
		for name, percent := range used {
			w.fill(c.provider(), name, percent)
			w.promptOn(c, name)
			w.knows(c.provider(), name, percent)
		}
		w.forget()
		together := make(chan struct{})
		for _, a := range w.of(c.provider()) {
			w.upstream.Script(a.token, upstream.OK().After(together))
		}
		terminal := w.openTerminal(c)
		terminal.await(terminal.ready)
		terminal.enter("Say hello to everybody")
		eventually(t, "the title and the main request are under way at the same time", func() bool {
			return titles(w.upstream.Turns()) == 1 && len(mains(w.upstream.Turns())) == 1
		})
		close(together)
		terminal.await(greeting)

		var served []string
		for _, request := range w.upstream.Turns() {
			served = append(served, w.byToken(request.Token))
		}
		if len(unique(served)) != 1 || used[served[0]] != 10 {
			t.Errorf("the start was served by %v, want one account with room", served)
		}
		if bound := w.boundTo(c.provider(), mains(w.upstream.Turns())[0].Session); bound != served[0] {
			t.Errorf("the session is bound to %s, was served by %s", bound, served[0])
		}
	})
}
