package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
	"github.com/noria-dev/noria/core/internal/upstream"
)

// witness is what clients saw: for each session the account whose first byte came last, and the accounts that accepted work of it
// since then without a client seeing a byte. A daemon that was killed may have kept either.
type witness struct {
	mu       sync.Mutex // guards what follows
	seen     map[string]string
	possible map[string][]string
	free     []string // sessions that were seen and that nobody is using now
	fresh    int
}

// take gives a session to use: a new one, or one that was seen before.
func (w *witness) take(random *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.free); n > 0 && random.IntN(5) < 2 {
		i := random.IntN(n)
		session := w.free[i]
		w.free = slices.Delete(w.free, i, i+1)
		return session
	}
	w.fresh++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.fresh)
}

// first asks for a turn of the session and tells whether the client saw the first byte.
func (c *client) first(ctx context.Context, session string) bool {
	body, err := json.Marshal(map[string]any{
		"model": "claude-sonnet-5", "max_tokens": 64, "stream": true,
		"messages": []map[string]string{{"role": "user", "content": "hello"}},
	})
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Noria-Key", c.key)
	req.Header.Set("X-Claude-Code-Session-Id", session)
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the daemon may be killed meanwhile
	return resp.StatusCode == http.StatusOK
}

// load sends turns until ctx ends, and gives the sessions whose first byte was seen, and those that were asked for.
func (w *witness) load(ctx context.Context, c *client, workers int, seed uint64) (seen, asked map[string]bool) {
	seen, asked = map[string]bool{}, map[string]bool{}
	var working sync.WaitGroup
	for worker := range workers {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		working.Go(func() {
			for ctx.Err() == nil {
				session := w.take(random)
				ok := c.first(ctx, session)
				w.mu.Lock()
				asked[session] = true
				if ok {
					seen[session] = true
				}
				if ok || w.seen[session] != "" {
					w.free = append(w.free, session)
				}
				w.mu.Unlock()
			}
		})
	}
	working.Wait()
	return seen, asked
}

// note joins what clients saw with which account the upstream was asked as.
func (w *witness) note(turns []upstream.Request, seen, asked map[string]bool) {
	accepted := map[string][]string{}
	for _, turn := range turns {
		if turn.Status == http.StatusOK {
			accepted[turn.Session] = append(accepted[turn.Session], strings.TrimPrefix(turn.Token, token("")))
		}
	}
	for session := range asked {
		accounts := accepted[session]
		if len(accounts) == 0 {
			continue
		}
		if seen[session] {
			w.seen[session] = accounts[len(accounts)-1]
			delete(w.possible, session)
		}
		w.possible[session] = append(w.possible[session], accounts...)
	}
}

// check compares the bindings after a restart with what clients saw. Every session that a client saw the first byte of is among them
// when there are fewer than the limit.
func (w *witness) check(sessions []api.Session, limit int) (found int, errs []error) {
	all := len(sessions) < limit
	bound := map[string]string{}
	for _, session := range sessions {
		if len(session.Bindings) == 1 {
			bound[strings.TrimPrefix(session.Key, "claude/")] = strings.TrimPrefix(session.Bindings[0].Account, "claude/")
		}
	}
	for session, account := range w.seen {
		got, ok := bound[session]
		switch {
		case !ok && all:
			errs = append(errs, fmt.Errorf("session %s on %s was seen by a client and is gone", session, account))
		case ok && got != account && !slices.Contains(w.possible[session], got):
			errs = append(errs, fmt.Errorf("session %s was seen on %s and is bound to %s", session, account, got))
		case ok:
			found++
		}
	}
	return found, errs
}

// sessionsOf asks the daemon for its newest sessions.
func (s *scene) sessionsOf(limit int) []api.Session {
	s.Helper()
	control := api.NewClient(s.Path("state", "control.sock"))
	defer control.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	sessions, err := control.Sessions(ctx, api.SessionFilter{Limit: limit})
	if err != nil {
		s.Fatal(err)
	}
	return sessions
}

// startTimed starts a daemon and adds how long that took until it was ready.
func (s *scene) startTimed(times *[]time.Duration) *noriatest.Daemon {
	s.Helper()
	begun := time.Now()
	d := s.Start().Ready()
	*times = append(*times, time.Since(begun))
	return d
}

func spread(durations []time.Duration) string {
	if len(durations) == 0 {
		return "none"
	}
	slices.Sort(durations)
	at := func(q float64) time.Duration {
		return durations[int(q*float64(len(durations)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, max %v", at(.5), at(.99), at(1))
}

// TestNoFirstByteIsForgottenWhenTheDaemonIsKilled kills a serving daemon at random moments under load, some of which makes sessions
// move: now and then an account refuses one turn for a window that is free again at once.
func TestNoFirstByteIsForgottenWhenTheDaemonIsKilled(t *testing.T) {
	s := newScene(t, "ada", "ben", "cyn", "dot")
	w := &witness{seen: map[string]string{}, possible: map[string][]string{}}
	random := rand.New(rand.NewPCG(11, 12))
	var times []time.Duration
	var key string
	bytesSeen := 0
	for round := range kills {
		d := s.startTimed(&times)
		if key == "" {
			key = d.Key()
		}
		limit := 2000
		if round%50 == 49 {
			limit = 100_000
		}
		if _, errs := w.check(s.sessionsOf(limit), limit); len(errs) > 0 {
			t.Fatalf("after %d kills: %v", round, errors.Join(errs...))
		}
		s.upstream.Forget()
		if random.IntN(3) == 0 {
			account := s.accounts[random.IntN(len(s.accounts))]
			s.upstream.Script(token(account), upstream.OK(), upstream.Quota("five_hour", time.Now().Add(2*time.Second)), upstream.OK().WithTelemetry())
		}
		seen, asked := s.loadUntilKilled(d, w, key, time.Duration(random.Int64N(int64(killWithin))), uint64(round))
		w.note(s.upstream.Turns(), seen, asked)
		bytesSeen += len(seen)
	}
	d := s.startTimed(&times)
	found, errs := w.check(s.sessionsOf(100_000), 100_000)
	if len(errs) > 0 {
		t.Fatalf("at the end: %v", errors.Join(errs...))
	}
	if bytesSeen == 0 {
		t.Error("no client saw a first byte")
	}
	if code := d.Stop(); code != 0 {
		t.Errorf("the last daemon ended with code %d", code)
	}
	t.Logf("%d kills, %d first bytes seen, %d sessions all on their accounts, 0 lost, 0 wrong; from start to ready %s", kills, bytesSeen, found, spread(times))
}

// TestTheCheckNoticesStateThatIsLost is the control of the campaign: the same load, kill and check with the newest journal taken away.
func TestTheCheckNoticesStateThatIsLost(t *testing.T) {
	s := newScene(t, "ada", "ben")
	w := &witness{seen: map[string]string{}, possible: map[string][]string{}}
	d := s.Start().Ready()
	seen, asked := s.loadUntilKilled(d, w, d.Key(), 300*time.Millisecond, 1)
	w.note(s.upstream.Turns(), seen, asked)
	journals, err := filepath.Glob(s.Path("state", "journal-*"))
	if err != nil || len(journals) == 0 || len(w.seen) == 0 {
		t.Fatalf("nothing to lose: %v, %v, %d sessions", journals, err, len(w.seen))
	}
	for _, journal := range journals {
		if err := os.Truncate(journal, 0); err != nil {
			t.Fatal(err)
		}
	}
	d = s.Start().Ready()
	if _, errs := w.check(s.sessionsOf(100_000), 100_000); len(errs) != len(w.seen) {
		t.Errorf("%d of %d lost sessions were noticed", len(errs), len(w.seen))
	}
	if code := d.Stop(); code != 0 {
		t.Errorf("the daemon ended with code %d", code)
	}
}

// loadUntilKilled kills the daemon after a while of load.
func (s *scene) loadUntilKilled(d *noriatest.Daemon, w *witness, key string, after time.Duration, seed uint64) (seen, asked map[string]bool) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c := &client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 60 * time.Second},
		url:  "http://" + d.Address + "/claude/v1/messages",
		key:  key,
	}
	defer c.http.CloseIdleConnections()
	moment := time.AfterFunc(after, func() {
		d.Kill()
		stop()
	})
	defer moment.Stop()
	return w.load(ctx, c, 6, seed)
}

// recovered is the line in which the journal says how long it took.
var recovered = regexp.MustCompile(`recovered: .*took=(\S+)`)

// TestTenThousandBindingsAreThereAgain reports how long a start with many bindings takes.
func TestTenThousandBindingsAreThereAgain(t *testing.T) {
	const n = 10_000
	s := newScene(t, "ada", "ben")
	d := s.Start().Ready()
	if _, errs, code := s.Run("state", "import", s.Write("bindings.json", exported(n))); code != 0 {
		t.Fatalf("import ended with code %d: %s", code, errs)
	}
	var ready, recovery []time.Duration
	for range manyStarts {
		d.Kill()
		d = s.startTimed(&ready)
		if got := len(s.sessionsOf(100_000)); got != n {
			t.Fatalf("%d sessions, want %d", got, n)
		}
		match := recovered.FindStringSubmatch(d.Log())
		if match == nil {
			t.Fatalf("nothing about recovery in the log:\n%s", d.Log())
		}
		took, err := time.ParseDuration(match[1])
		if err != nil {
			t.Fatal(err)
		}
		recovery = append(recovery, took)
	}
	t.Logf("%d bindings, %d kills: recovery %s; from start to ready, adapters included, %s", n, manyStarts, spread(recovery), spread(ready))
}

// exported is n bindings as another machine exported them.
func exported(n int) string {
	now := time.Now().UTC().Format(time.RFC3339)
	var text strings.Builder
	fmt.Fprintf(&text, `{"format":1,"exported_at":%q,"bindings":[`, now)
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"session":"claude/%08x-0000-4000-8000-000000000000","model":"claude-sonnet-5","account":%q,"bound_at":%q,"last_used":%q,"bound_by":"initial"}`,
			i, []string{"ada", "ben"}[i%2], now, now)
	}
	text.WriteString("]}")
	return text.String()
}

func TestABlockerIsThereAgainWhenTheDaemonIsKilledAfterAFailover(t *testing.T) {
	s := newScene(t, "ada", "ben", "cyn")
	d := s.Start().Ready()
	key := d.Key()
	const session = "00000000-0000-4000-8000-000000000001"
	resets := time.Now().Add(time.Hour).Truncate(time.Second)
	for range len(s.accounts) - 1 {
		c := clientOf(d)
		c.key = key
		c.served(t, session)
		bound := s.onlyBinding()
		s.upstream.Script(token(bound), upstream.Quota("five_hour", resets))
		c.served(t, session) // on another account
		d.Kill()
		d = s.Start().Ready()
		if now := s.onlyBinding(); now == bound {
			t.Errorf("the session is back on %s", bound)
		}
		if !s.blocked(bound, resets) {
			t.Errorf("%s is not blocked any more", bound)
		}
	}
}

// onlyBinding names the account of the one session there is.
func (s *scene) onlyBinding() string {
	s.Helper()
	sessions := s.sessionsOf(10)
	if len(sessions) != 1 || len(sessions[0].Bindings) != 1 {
		s.Fatalf("sessions %+v", sessions)
	}
	return strings.TrimPrefix(sessions[0].Bindings[0].Account, "claude/")
}

// blocked tells whether the daemon knows that the account cannot serve before then.
func (s *scene) blocked(account string, until time.Time) bool {
	s.Helper()
	control := api.NewClient(s.Path("state", "control.sock"))
	defer control.Close()
	accounts, err := control.Accounts(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for _, a := range accounts {
		if a.Name != account {
			continue
		}
		for _, b := range a.Blockers {
			if b.ClearsAt.Equal(until) {
				return true
			}
		}
	}
	return false
}
