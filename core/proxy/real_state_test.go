package proxy

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// realRig is a rig over the real state, on a log that can be recovered from.
func realRig(t *testing.T) (*rig, *state.Store, *state.MemoryLog) {
	t.Helper()
	log := state.NewMemoryLog(true)
	store := openStoreOn(t, log)
	return newRig(t, func(_ *rig, o *Options) { o.State = store }), store, log
}

func accountOf(t *testing.T, s *state.Store, session string) string {
	t.Helper()
	account, _ := s.SessionAccount(session)
	return account.Name
}

func TestOverTheRealState(t *testing.T) {
	t.Run("a quota rejection moves the session, which stays", func(t *testing.T) {
		r, store, log := realRig(t)
		wantServed(t, r.do(turn("s1")))
		old := accountOf(t, store, "claude/s1")
		r.upstream.Script(old, upstream.Quota("five_hour", time.Now().Add(time.Hour)))
		wantServed(t, r.do(turn("s1")))
		r.upstream.Script(old, upstream.OK())
		wantServed(t, r.do(turn("s1")))
		turns := strings.Fields(r.accountsOf())
		if len(turns) != 4 || turns[0] != old || turns[1] != old || turns[2] == old || turns[3] != turns[2] {
			t.Errorf("turns reached %v, want %s twice and then another for good", turns, old)
		}
		if got := r.events.of("moved"); len(got) != 1 || got[0].From != old || got[0].Account != turns[2] {
			t.Errorf("events %+v, want one move", got)
		}
		// What a client saw the first byte of is in the log, whatever becomes of the process.
		again := openStoreOn(t, log)
		if got := accountOf(t, again, "claude/s1"); got != turns[2] {
			t.Errorf("after recovery the session is on %q, want %s", got, turns[2])
		}
		if view, err := again.AccountByID(quota.AccountID{Provider: "claude", Name: old}, time.Now()); err != nil || len(view.Blockers) != 1 {
			t.Errorf("after recovery %s has blockers %v, %v, want one", old, view.Blockers, err)
		}
	})
	t.Run("a throttle detours and moves nothing, also while it lasts", func(t *testing.T) {
		r, store, _ := realRig(t)
		wantServed(t, r.do(turn("s1")))
		home := accountOf(t, store, "claude/s1")
		r.upstream.Script(home, upstream.Throttled(30*time.Second))
		for range 2 {
			wantServed(t, r.do(turn("s1")))
			if got := accountOf(t, store, "claude/s1"); got != home {
				t.Errorf("the session is on %s, want %s", got, home)
			}
		}
		if got := r.events.of("detour"); len(got) != 2 {
			t.Errorf("events %+v, want two detours", got)
		}
		if got := r.events.of("moved"); len(got) != 0 {
			t.Errorf("events %+v, want no move", got)
		}
	})
	t.Run("parallel first requests end on one account", func(t *testing.T) {
		r, _, _ := realRig(t)
		ready := make(chan struct{})
		for _, token := range []string{"a", "b", "c"} {
			r.upstream.Script(token, upstream.OK().After(ready))
		}
		var clients sync.WaitGroup
		for range 6 {
			clients.Go(func() { wantServed(t, r.do(turn("s1"))) })
		}
		r.upstream.Wait(t.Context().Done(), func(all []upstream.Request) bool { return len(all) == 6 })
		close(ready)
		clients.Wait()
		turns := strings.Fields(r.accountsOf())
		for _, account := range turns {
			if account != turns[0] {
				t.Errorf("turns reached %v, want one account", turns)
			}
		}
		r.events.wait(t.Context(), "request", 6)
		if got := r.events.of("bound"); len(got) != 1 || got[0].Account != turns[0] {
			t.Errorf("events %+v, want one binding", got)
		}
	})
	t.Run("a burst of sessions spreads", func(t *testing.T) {
		r, _, _ := realRig(t)
		for _, session := range []string{"s1", "s2", "s3"} {
			wantServed(t, r.do(turn(session)))
		}
		seen := map[string]bool{}
		for _, account := range strings.Fields(r.accountsOf()) {
			seen[account] = true
		}
		if len(seen) != 3 {
			t.Errorf("turns reached %v, want three accounts", r.accountsOf())
		}
	})
	t.Run("all exhausted gives counts and the earliest time", func(t *testing.T) {
		r, _, _ := realRig(t)
		earliest := time.Now().Add(40 * time.Minute).Truncate(time.Second)
		for i, account := range []string{"a", "b", "c"} {
			r.upstream.Script(account, upstream.Quota("five_hour", earliest.Add(time.Duration(i)*time.Hour)))
		}
		got := r.do(turn("s1"))
		wantOwn(t, got, 429, "None of your 3 claude accounts can serve this request: 3 have used up their quota.", "in 40 min")
		r.upstream.Forget()
		wantOwn(t, r.do(turn("s1")), 429, "in 40 min")
		if turns := r.accountsOf(); turns != "" {
			t.Errorf("turns reached %q, want none: it is known already", turns)
		}
	})
	t.Run("nothing stays reserved", func(t *testing.T) {
		r, store, _ := realRig(t)
		r.upstream.Script("b", upstream.Unauthorized())
		r.upstream.Script("c", upstream.OK().Cut(4))
		for _, session := range []string{"s1", "s2", "s3", ""} {
			r.do(turn(session))
			r.do(call{path: "/claude/v1/messages/count_tokens", session: session, body: `{}`})
		}
		r.events.wait(t.Context(), "request", 8)
		for _, a := range store.Accounts(time.Now()) {
			if a.InFlight != 0 {
				t.Errorf("%s has %d requests in flight", a.ID, a.InFlight)
			}
		}
	})
}
