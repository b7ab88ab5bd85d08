package agent_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// obstruct takes the journal away and stands in the way of the next ones, as a disk without room does, whoever runs the test.
func (s *scene) obstruct() (clear func()) {
	s.Helper()
	journals, err := filepath.Glob(s.Path("state", "journal-*"))
	if err != nil || len(journals) == 0 {
		s.Fatal(journals, err)
	}
	newest := 0
	for _, path := range journals {
		generation, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "journal-"))
		if err != nil {
			s.Fatal(err)
		}
		newest = max(newest, generation)
	}
	var obstacles []string
	for i := range 100 {
		obstacle := s.Path("state", fmt.Sprint("journal-", newest+1+i))
		if err := os.Mkdir(obstacle, 0o700); err != nil {
			s.Fatal(err)
		}
		obstacles = append(obstacles, obstacle)
	}
	if err := os.Remove(s.Path("state", fmt.Sprint("journal-", newest))); err != nil {
		s.Fatal(err)
	}
	return func() {
		for _, obstacle := range obstacles {
			if err := os.Remove(obstacle); err != nil {
				s.Error(err)
			}
		}
	}
}

// metric is the line of a metric without labels.
func (s *scene) metric(name string) string {
	s.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Path("state", "control.sock"))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://noria/metrics", nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name+" ") {
			return strings.TrimSpace(line)
		}
	}
	return "no " + name
}

// journalIs asks the daemon for the state of its journal.
func (s *scene) journalIs(want string) bool {
	control := api.NewClient(s.Path("state", "control.sock"))
	defer control.Close()
	status, err := control.Status(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	return status.Journal == want
}

func TestADegradedJournalIsToldServesOnAndHealsByItself(t *testing.T) {
	s := newScene(t, "ada", "ben")
	d := s.Start().Ready()
	c := clientOf(d)
	const sessions = 6
	session := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	c.served(t, session(0))

	clear := s.obstruct()
	for i := range sessions {
		c.served(t, session(i))
	}
	if !s.journalIs("degraded") {
		t.Fatal("status does not say that the journal is degraded")
	}
	if got := s.metric("noria_journal_degraded"); got != "noria_journal_degraded 1" {
		t.Errorf("metrics say %s", got)
	}
	out, _, code := s.Run("doctor")
	if code != 1 || !strings.Contains(out, "nothing is written durably") || !strings.Contains(out, "tries again by itself") {
		t.Errorf("doctor ends with %d and says\n%s", code, out)
	}

	clear()
	noriatest.Eventually(t, "the journal heals by itself", func() bool { return s.journalIs("ok") })
	if got := s.metric("noria_journal_degraded"); got != "noria_journal_degraded 0" {
		t.Errorf("metrics say %s", got)
	}
	bound := s.sessionsOf(100)
	d.Kill()
	s.Start().Ready()
	after := map[string]string{}
	for _, b := range s.sessionsOf(100) {
		after[b.Key] = b.Bindings[0].Account
	}
	if len(bound) != sessions || len(after) != sessions {
		t.Fatalf("%d sessions before the kill, %d after it, want %d", len(bound), len(after), sessions)
	}
	for _, b := range bound {
		if after[b.Key] != b.Bindings[0].Account {
			t.Errorf("session %s was on %s and is on %s", b.Key, b.Bindings[0].Account, after[b.Key])
		}
	}
}
