package agent_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// waiting is the account whose credential command gives nothing until the test lets it.
const waiting = "waiting"

// newWaitingScene has such an account beside one that serves.
func newWaitingScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, "ada", waiting)
	if err := syscall.Mkfifo(s.Path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.Path("noria.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	from := fmt.Sprintf("file = %q", s.Path(waiting+".token"))
	to := fmt.Sprintf("command = [\"cat\", %q]", s.Path("pipe"))
	if !strings.Contains(string(text), from) {
		t.Fatalf("no %s in\n%s", from, text)
	}
	s.Write("noria.hcl", strings.Replace(string(text), from, to, 1))
	return s
}

// letCome gives the command what it waits for, as soon as it waits.
func (s *scene) letCome() {
	s.Helper()
	pipe, err := os.OpenFile(s.Path("pipe"), os.O_WRONLY, 0)
	if err != nil {
		s.Fatal(err)
	}
	defer pipe.Close()
	if _, err := pipe.WriteString(token(waiting)); err != nil {
		s.Fatal(err)
	}
}

// pausing reports whether the account is in a cooldown.
func (s *scene) pausing(name string) bool {
	s.Helper()
	return slices.ContainsFunc(s.accountsNow()[name].Blockers, func(b api.Blocker) bool { return b.Cooldown })
}

// boundTo is the account that the session lives on.
func (s *scene) boundTo(session string) string {
	s.Helper()
	sessions := asked[[]api.Session](s, "sessions", "list")
	for _, one := range sessions {
		if strings.HasSuffix(one.Key, session) && len(one.Bindings) == 1 {
			return one.Bindings[0].Account
		}
	}
	s.Fatalf("%s is not among the sessions %+v", session, sessions)
	return ""
}

func TestACredentialThatDoesNotComeHoldsNobodyUpAndMovesNobody(t *testing.T) {
	s := newWaitingScene(t)
	d := s.Start().Ready()
	c := clientOf(d)
	const bound, fresh = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"

	s.do("accounts", "disable", "claude/ada")
	first := make(chan int, 1)
	go func() {
		status, _, _ := c.turn(bound, "claude-sonnet-5")
		first <- status
	}()
	s.letCome()
	if status := <-first; status != http.StatusOK {
		t.Fatalf("status %d with the credential", status)
	}
	s.do("accounts", "enable", "claude/ada")

	// Its lease is dropped, so the command runs again.
	s.do("accounts", "disable", "claude/"+waiting)
	s.do("accounts", "enable", "claude/"+waiting)
	s.upstream.Forget()
	c.served(t, bound)
	c.served(t, bound)
	c.served(t, fresh)
	if got := only(t, s.servedBy()); got != "ada" {
		t.Errorf("served by %s, whose credential did not come", got)
	}
	if got := s.boundTo(bound); got != "claude/"+waiting {
		t.Errorf("the session moved to %s because its account's credential was late", got)
	}
	if !s.pausing(waiting) {
		t.Error("the account takes new placements")
	}

	s.letCome()
	noriatest.Eventually(t, "the pause ends when the credential comes", func() bool { return !s.pausing(waiting) })
	s.upstream.Forget()
	c.served(t, bound)
	if got := only(t, s.servedBy()); got != waiting {
		t.Errorf("the session is served by %s, want its own account again", got)
	}
}
