package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/placement"
)

func TestExplainASession(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/s", "m")
	e, err := f.Explain("claude/s", "", f.now)
	if err != nil {
		t.Fatal(err)
	}
	if e.Model != "m" || e.Session == nil || e.Session.Bindings[0].Account != id("a") {
		t.Errorf("explanation = %+v", e)
	}
	if e.Last == nil || e.Last.How != placement.HowKnown || len(e.Last.Candidates) != 2 {
		t.Errorf("last decision = %+v", e.Last)
	}
	if e.Now.How != placement.HowBound || len(e.Now.Candidates) != 2 {
		t.Errorf("next decision = %+v", e.Now)
	}
	if _, err := f.Explain("claude/x", "m", f.now); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("error = %v", err)
	}
}

func TestExplainingReservesNothing(t *testing.T) {
	f := open(t, "a", "b")
	before := f.accounts[id("a")].Cadence.PerHour("m", f.now)
	for range 100 {
		e := f.ExplainNew("claude", "m", f.now)
		if e.Now.Account != id("a") || !strings.Contains(placement.Explain(e.Now), "the greatest score of 2 accounts") {
			t.Fatalf("explanation:\n%s", placement.Explain(e.Now))
		}
	}
	if s := f.Stats(); s.InFlight != 0 || s.Reservations != 0 || s.InMemory != 0 {
		t.Errorf("stats = %+v", s)
	}
	if got := f.accounts[id("a")].Cadence.PerHour("m", f.now); got != before {
		t.Errorf("cadence = %v", got)
	}
}

func TestExplainARequest(t *testing.T) {
	f := open(t, "a", "b")
	f.try("a", "claude/s", "m")
	if d, ok := f.RequestDecision("r1"); !ok || d.Account != id("a") {
		t.Errorf("decision = %+v, %v", d, ok)
	}
	for _, none := range []string{"", "r2"} {
		if _, ok := f.RequestDecision(none); ok {
			t.Errorf("there is a decision of request %q", none)
		}
	}
}

func TestRememberedDecisionsAreBounded(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("a", i))
	}
	f := open(t, names...)
	for i := range 2 * rememberedDecisions {
		attempt, _ := f.ask(fmt.Sprint("claude/", i), "m")
		f.End(attempt, f.now)
	}
	if f.decisions.candidates > rememberedCandidates || f.decisions.count != rememberedCandidates/100 {
		t.Errorf("%d decisions with %d candidates", f.decisions.count, f.decisions.candidates)
	}
	if _, ok := f.RequestDecision(fmt.Sprint("r", 2*rememberedDecisions)); !ok {
		t.Error("the newest is forgotten")
	}
	if _, ok := f.RequestDecision("r1"); ok {
		t.Error("the oldest is remembered")
	}
}

func TestFindSessions(t *testing.T) {
	f := open(t, "a")
	for _, s := range []string{"claude/abc", "claude/abcd", "claude/xyz"} {
		f.serve("a", s, "m")
		f.serve("a", s, "n")
	}
	for subject, want := range map[string]string{
		"claude/abc":              "[claude/abc]",
		"abc":                     "[claude/abc]",
		"ab":                      "[claude/abc claude/abcd]",
		"x":                       "[claude/xyz]",
		SessionHash("claude/xyz"): "[claude/xyz]",
		"claude/":                 "[claude/abc claude/abcd]",
		"none":                    "[]",
	} {
		if got := fmt.Sprint(f.FindSessions(subject, 2)); got != want {
			t.Errorf("%q finds %s, want %s", subject, got, want)
		}
	}
}

func TestSessionsAreListedNewestFirst(t *testing.T) {
	f := open(t, "a", "b")
	for i, s := range []string{"claude/1", "claude/2", "claude/3"} {
		f.pass(1e9)
		f.serve("a", s, "m")
		_ = i
	}
	f.pass(1e9)
	f.serve("a", "claude/1", "m")
	keys := func(filter SessionFilter) (list []string) {
		for _, v := range f.Sessions(filter) {
			list = append(list, v.Key)
		}
		return list
	}
	if got := fmt.Sprint(keys(SessionFilter{})); got != "[claude/1 claude/3 claude/2]" {
		t.Errorf("sessions = %s", got)
	}
	if got := fmt.Sprint(keys(SessionFilter{Limit: 1})); got != "[claude/1]" {
		t.Errorf("sessions = %s", got)
	}
	if got := keys(SessionFilter{Account: id("b")}); len(got) != 0 {
		t.Errorf("sessions on b = %v", got)
	}
	if got := keys(SessionFilter{Provider: "codex"}); len(got) != 0 {
		t.Errorf("sessions of codex = %v", got)
	}
}
