package state

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// model is what the promises say of bindings, as a plain map.
type model struct {
	bindings map[string]string // session → account
	attempts map[uint64]*try
	tried    map[string][]quota.AccountID // of the request that a session is trying now
	// blocked is what must keep an account away, until a time.
	blocked map[string]time.Time
}

type try struct {
	session, account string
	seen             string // binding when it was placed
	detour           bool
	accepted         bool
}

// history drives a store and its model with the same operations.
type history struct {
	*fixture
	model
}

var names = []string{"a", "b", "c"}

func newHistory(t rapid.TB) *history {
	return &history{fixture: open(t, names...), model: model{
		bindings: map[string]string{}, attempts: map[uint64]*try{},
		tried: map[string][]quota.AccountID{}, blocked: map[string]time.Time{},
	}}
}

func (h *history) usable(account string) bool { return !h.now.Before(h.blocked[account]) }

func (h *history) place(t *rapid.T) {
	session := rapid.SampledFrom([]string{"", "claude/1", "claude/2", "claude/3", "claude/4"}).Draw(t, "session")
	h.fixture.attempts++
	req := placement.Request{
		Attempt: h.fixture.attempts, Session: session, Provider: "claude", Model: "m", Binds: true,
		Tried: h.tried[session], At: h.now,
	}
	d, err := h.Place(req)
	if err != nil {
		t.Fatal(err)
	}
	bound := h.bindings[session]
	free := 0
	for _, n := range names {
		if h.usable(n) && !contains(req.Tried, n) {
			free++
		}
	}
	if d.Placed != (free > 0) {
		t.Fatalf("placed %v with %d accounts that can serve\n%s", d.Placed, free, placement.Explain(d))
	}
	if !d.Placed {
		delete(h.tried, session)
		return
	}
	if !h.usable(d.Account.Name) || contains(req.Tried, d.Account.Name) {
		t.Fatalf("placed on %s, which cannot serve\n%s", d.Account, placement.Explain(d))
	}
	if bound != "" && h.usable(bound) && !contains(req.Tried, bound) && d.Account.Name != bound && !h.accounts[id(bound)].Paused(h.now) {
		t.Fatalf("%s left %s in health\n%s", session, bound, placement.Explain(d))
	}
	h.model.attempts[req.Attempt] = &try{
		session: session, account: d.Account.Name, seen: bound,
		detour: bound != "" && bound != d.Account.Name && h.usable(bound),
	}
}

func contains(tried []quota.AccountID, name string) bool {
	for _, id := range tried {
		if id.Name == name {
			return true
		}
	}
	return false
}

// pick draws one attempt under way.
func (h *history) pick(t *rapid.T) (uint64, *try) {
	for {
		if len(h.model.attempts) == 0 {
			h.place(t)
			if len(h.model.attempts) == 0 {
				h.wait(t)
				continue
			}
		}
		n := rapid.IntRange(0, int(h.fixture.attempts)-1).Draw(t, "attempt")
		for i := range h.fixture.attempts {
			at := (uint64(n)+i)%h.fixture.attempts + 1
			if a := h.model.attempts[at]; a != nil {
				return at, a
			}
		}
	}
}

func (h *history) acceptOne(t *rapid.T) {
	n, a := h.pick(t)
	sequence := h.accept(n)
	if a.session != "" && !a.accepted && !a.detour && h.bindings[a.session] == a.seen {
		h.bindings[a.session] = a.account
	}
	a.accepted = true
	delete(h.tried, a.session)
	if (sequence != 0) != (a.session != "" && h.bindings[a.session] == a.account) {
		t.Fatalf("acceptance on %s of a session on %q waits for %d", a.account, h.bindings[a.session], sequence)
	}
}

func (h *history) rejectOne(t *rapid.T) {
	n, a := h.pick(t)
	r := rapid.SampledFrom([]quota.Rejection{
		{Cause: quota.CauseQuota, WindowID: "5h", ClearsAt: h.now.Add(time.Hour)},
		{Cause: quota.CauseThrottle},
		{Cause: quota.CauseNetwork},
		{Cause: quota.CauseCredential},
	}).Draw(t, "rejection")
	h.reject(n, r)
	if r.Cause == quota.CauseQuota {
		h.blocked[a.account] = h.now.Add(time.Hour)
	}
	if !a.accepted {
		delete(h.model.attempts, n)
		h.tried[a.session] = append(append([]quota.AccountID(nil), h.tried[a.session]...), id(a.account))
	}
}

func (h *history) endOne(t *rapid.T) {
	n, a := h.pick(t)
	if a.accepted || rapid.Bool().Draw(t, "abort") {
		h.End(n, h.now)
		delete(h.tried, a.session)
		delete(h.model.attempts, n)
	}
}

func (h *history) wait(t *rapid.T) {
	h.pass(time.Duration(rapid.IntRange(1, 3000).Draw(t, "seconds")) * time.Second)
}

func (h *history) kill(*rapid.T) {
	h.fixture.recover()
	clear(h.model.attempts)
	clear(h.tried)
}

func (h *history) forget(t *rapid.T) {
	session := rapid.SampledFrom([]string{"claude/1", "claude/2"}).Draw(t, "session")
	if _, err := h.ForgetSession(session, h.now); (err == nil) != (h.bindings[session] != "") {
		t.Fatalf("forgetting %s on %q: %v", session, h.bindings[session], err)
	}
	delete(h.bindings, session)
}

func (h *history) check(t *rapid.T) {
	for _, s := range []string{"claude/1", "claude/2", "claude/3", "claude/4"} {
		view, _ := h.Session(s)
		got := ""
		if len(view.Bindings) > 0 {
			got = view.Bindings[0].Account.Name
		}
		if got != h.bindings[s] {
			t.Fatalf("%s lives on %q, the model says %q", s, got, h.bindings[s])
		}
	}
	inFlight := map[string]uint64{}
	for _, a := range h.model.attempts {
		inFlight[a.account]++
	}
	bindings := map[string]int{}
	for _, a := range h.bindings {
		bindings[a]++
	}
	for _, n := range names {
		a := h.accounts[id(n)]
		if a.InFlight.Total() != inFlight[n] || a.bindings != bindings[n] {
			t.Fatalf("%s has %d in flight and %d bindings; the model says %d and %d", n, a.InFlight.Total(), a.bindings, inFlight[n], bindings[n])
		}
		if a.LiveSessions < 0 || a.Unconfirmed < 0 {
			t.Fatalf("%s has %d live sessions, %d unconfirmed attempts", n, a.LiveSessions, a.Unconfirmed)
		}
	}
	if len(h.bindings) != h.Stats().Bindings || len(h.model.attempts) != h.Stats().InFlight {
		t.Fatalf("stats = %+v", h.Stats())
	}
}

func TestHistoriesKeepThePromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"place": h.place, "accept": h.acceptOne, "reject": h.rejectOne, "end": h.endOne,
			"wait": h.wait, "kill": h.kill, "forget": h.forget, "": h.check,
		})
		for n := range h.model.attempts {
			h.End(n, h.now)
		}
		clear(h.model.attempts)
		h.check(rt)
		h.pass(2 * quota.ActivePeriodGap)
		for _, n := range names {
			if a := h.accounts[id(n)]; a.LiveSessions != 0 || a.Unconfirmed != 0 {
				rt.Fatalf("%s has %d live sessions, %d unconfirmed attempts after all ended", n, a.LiveSessions, a.Unconfirmed)
			}
		}
	})
}

func TestParallelFirstRequestsOfASessionEndOnOneAccount(t *testing.T) {
	f := open(t, "a", "b", "c")
	for _, n := range []string{"a", "b", "c"} {
		f.read(n, 10, 10)
	}
	const sessions, requests = 20, 10
	var group sync.WaitGroup
	accounts := make([][requests]string, sessions)
	for s := range sessions {
		for r := range requests {
			group.Go(func() {
				attempt := uint64(s*requests + r + 1)
				d, err := f.Place(placement.Request{Attempt: attempt, Session: fmt.Sprint("claude/", s), Provider: "claude", Model: "m", Binds: true, At: f.now})
				if err != nil {
					t.Error(err)
					return
				}
				accounts[s][r] = d.Account.Name
				if _, err := f.Accept(attempt, f.now); err != nil {
					t.Error(err)
				}
				f.End(attempt, f.now)
			})
		}
	}
	group.Wait()
	spread := map[string]int{}
	for s := range accounts {
		for _, a := range accounts[s] {
			if a != accounts[s][0] {
				t.Fatalf("session %d went to %v", s, accounts[s])
			}
		}
		spread[accounts[s][0]]++
	}
	for _, n := range []string{"a", "b", "c"} {
		if spread[n] < sessions/3-1 || spread[n] > sessions/3+1 {
			t.Errorf("sessions spread as %v over three equal accounts", spread)
		}
	}
}

func TestABurstOfNewSessionsSpreads(t *testing.T) {
	f := open(t, "a", "b", "c")
	for _, n := range []string{"a", "b", "c"} {
		f.read(n, 10, 10)
	}
	var mu sync.Mutex
	spread := map[string]int{}
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			d, err := f.Place(placement.Request{Attempt: uint64(i + 1), Session: fmt.Sprint("claude/", i), Provider: "claude", Model: "m", Binds: true, At: f.now})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			spread[d.Account.Name]++
			mu.Unlock()
		})
	}
	group.Wait()
	for n, sessions := range spread {
		if sessions < 66 || sessions > 67 {
			t.Errorf("%s got %d of 200: %v", n, sessions, spread)
		}
	}
}

// TestConcurrentOperationsAgreeWithAMap runs 10,000 lists of operations, many at once, against one store. Every session
// belongs to one goroutine, which knows from a plain map where it must live.
func TestConcurrentOperationsAgreeWithAMap(t *testing.T) {
	f := open(t, names...)
	const workers, lists = 8, 10_000 / 8
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() { // readers and the ticker run beside
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			f.Accounts(start)
			f.Sessions(SessionFilter{Limit: 5})
			f.ExplainNew("claude", "m", start)
			if err := f.Tick(start.Add(time.Duration(i) * time.Millisecond)); err != nil {
				t.Error(err)
			}
			if i%50 == 0 {
				if err := f.Snapshot(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var workersDone sync.WaitGroup
	lives := [workers]map[string]string{}
	for w := range workers {
		lives[w] = map[string]string{}
		workersDone.Go(func() {
			for n := range lists {
				session := fmt.Sprintf("claude/%d-%d", w, n%7)
				attempt := uint64(w*lists+n+1) << 8
				if err := f.oneList(session, attempt, n, lives[w]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workersDone.Wait()
	close(stop)
	group.Wait()
	if stats := f.Stats(); stats.InFlight != 0 || stats.Reservations != 0 {
		t.Errorf("stats = %+v", stats)
	}
	f.must(f.Close())
	f.recover()
	bound := 0
	for _, lives := range lives {
		for session, account := range lives {
			f.lives(account, session, "m")
		}
		bound += len(lives)
	}
	if got := f.Stats().Bindings; got != bound || bound == 0 {
		t.Errorf("%d bindings after the restart, the maps hold %d", got, bound)
	}
}

// oneList is a few operations of one session.
func (f *fixture) oneList(session string, attempt uint64, n int, lives map[string]string) error {
	d, err := f.Place(placement.Request{Attempt: attempt, Session: session, Provider: "claude", Model: "m", Binds: true, At: start})
	if err != nil {
		return err
	}
	if want := lives[session]; want != "" && d.Account.Name != want {
		return fmt.Errorf("%s went to %s, its home is %s", session, d.Account.Name, want)
	}
	switch n % 5 {
	case 0:
		f.End(attempt, start)
		return nil
	case 1:
		if _, err := f.Reject(attempt, quota.Rejection{Cause: "none"}, start); err != nil {
			return err
		}
		return nil
	}
	if _, err := f.Accept(attempt, start); err != nil {
		return err
	}
	lives[session] = d.Account.Name
	f.End(attempt, start)
	if n%31 == 0 {
		if _, err := f.ForgetSession(session, start); err != nil {
			return err
		}
		delete(lives, session)
	}
	view, ok := f.Session(session)
	if ok != (lives[session] != "") || (ok && view.Bindings[0].Account.Name != lives[session]) {
		return fmt.Errorf("%s lives on %+v, want %q", session, view.Bindings, lives[session])
	}
	return nil
}
