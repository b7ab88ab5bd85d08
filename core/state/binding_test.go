package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

func TestABindingIsMadeByAcceptance(t *testing.T) {
	f := open(t, "a", "b")
	attempt := f.try("a", "claude/s", "m")
	f.lives("", "claude/s", "m")
	if sequence := f.accept(attempt); sequence == 0 {
		t.Error("nothing to wait for before the first byte")
	}
	f.lives("a", "claude/s", "m")
}

func TestAcceptanceTellsWhatItDid(t *testing.T) {
	none := quota.AccountID{}
	f := open(t, "a", "b")
	tell := func(rule string, attempt uint64, home quota.AccountID, bound bool, from quota.AccountID, durable bool) {
		t.Helper()
		done, err := f.Accept(attempt, f.now)
		f.must(err)
		if done.Home != home || done.Bound != bound || done.From != from || (done.Sequence != 0) != durable {
			t.Errorf("%s: %+v", rule, done)
		}
	}
	first, follower := f.try("a", "claude/s", "m"), f.try("a", "claude/s", "m")
	tell("the first of a session binds it", first, id("a"), true, none, true)
	tell("once", first, id("a"), false, none, true)
	tell("another that was placed beside it finds it bound", follower, id("a"), false, none, true)
	tell("so does the next", f.try("a", "claude/s", "m"), id("a"), false, none, true)

	late, refused := f.try("a", "claude/s", "m"), f.try("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), throttled)
	tell("a detour leaves it where it is", f.try("b", "claude/s", "m", "a"), id("a"), false, none, false)
	f.reject(refused, weekGone)
	tell("a forced switch moves it", f.try("b", "claude/s", "m", "a"), id("b"), true, id("a"), true)
	tell("a late success on the old account does not", late, id("b"), false, none, false)
	tell("without a session there is nothing to bind", f.try("b", "", "m"), none, false, none, false)
	tell("nothing is known of an attempt that has ended", f.attempts+1, none, false, none, false)
}

func TestARefusedPlacementBindsNothing(t *testing.T) {
	f := open(t, "a", "b")
	f.End(f.try("a", "claude/s", "m"), f.now)
	f.lives("", "claude/s", "m")
}

func TestABoundSessionStays(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.read("a", 99, 99)
	f.serve("a", "claude/s", "m")
	f.read("a", 100, 100)
	f.serve("a", "claude/s", "m")
}

func TestAMovedSessionDoesNotReturn(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	attempt := f.try("a", "claude/s", "m")
	if f.reject(attempt, weekGone) == 0 {
		t.Error("a blocker has no sequence to wait for")
	}
	attempt = f.try("b", "claude/s", "m", "a")
	f.accept(attempt)
	f.end(attempt)
	f.pass(week)
	f.read("a", 0, 0)
	f.serve("b", "claude/s", "m")
	view, _ := f.Session("claude/s")
	want := []Move{{From: "a", To: "b", At: start, By: BoundByFailover, Cause: "quota"}}
	if diff := cmp.Diff(want, view.Bindings[0].Moves); diff != "" {
		t.Errorf("moves differ:\n%s", diff)
	}
}

func TestASessionThatAllRefusedKeepsItsAccount(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	f.reject(f.try("b", "claude/s", "m", "a"), weekGone)
	f.try("", "claude/s", "m", "a", "b")
	f.lives("a", "claude/s", "m")
}

func TestALateSuccessNeverMovesBack(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	slow := f.try("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	moved := f.try("b", "claude/s", "m", "a")
	f.accept(moved)
	f.accept(slow)
	f.lives("b", "claude/s", "m")
	f.end(slow)
	f.end(moved)
	f.lives("b", "claude/s", "m")
}

func TestALateSuccessDoesNotClearABlocker(t *testing.T) {
	f := open(t, "a", "b")
	slow := f.try("a", "claude/s", "m")
	f.reject(f.try("a", "claude/s", "m"), weekGone)
	f.accept(slow)
	f.end(slow)
	f.try("b", "claude/other", "m")
}

func TestAPlacementThatLostItsBindingDoesNotBind(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	slow := f.try("a", "claude/s", "m")
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	f.accept(slow)
	f.lives("", "claude/s", "m")
}

func TestADetourBindsNothing(t *testing.T) {
	for name, c := range map[string]func(*fixture) uint64{
		"after the throttle of this request": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/s", "m"), throttled)
			return f.try("b", "claude/s", "m", "a")
		},
		"while the account rests": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/other", "m"), throttled)
			return f.try("b", "claude/s", "m")
		},
		"while its credential does not come": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/s", "m"), quota.Rejection{Cause: quota.CauseCredential})
			return f.try("b", "claude/s", "m")
		},
		"asked for by the proxy": func(f *fixture) uint64 {
			f.attempts++
			d, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", Binds: true, Detour: true, Tried: []quota.AccountID{id("a")}, At: f.now})
			if err != nil || d.Account != id("b") {
				f.t.Fatalf("placed on %s: %v", d.Account, err)
			}
			return f.attempts
		},
		"after network trouble of this request": func(f *fixture) uint64 {
			f.reject(f.try("a", "claude/s", "m"), quota.Rejection{Cause: quota.CauseNetwork})
			return f.try("b", "claude/s", "m", "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a", "b")
			f.serve("a", "claude/s", "m")
			attempt := c(f)
			if sequence := f.accept(attempt); sequence != 0 {
				t.Error("a detour has something to wait for")
			}
			f.end(attempt)
			f.lives("a", "claude/s", "m")
			f.pass(time.Minute)
			f.serve("a", "claude/s", "m")
		})
	}
}

func TestFirstRequestsOfASessionEndOnOneAccount(t *testing.T) {
	t.Run("of one model", func(t *testing.T) {
		f := open(t, "a", "b")
		first, second := f.try("a", "claude/s", "m"), f.try("a", "claude/s", "m")
		f.reject(first, weekGone)
		again := f.try("b", "claude/s", "m", "a")
		f.reject(second, weekGone)
		follower := f.try("b", "claude/s", "m", "a")
		f.accept(follower)
		f.accept(again)
		f.lives("b", "claude/s", "m")
	})
	t.Run("of two models", func(t *testing.T) {
		f := open(t, "a", "b")
		title := f.try("a", "claude/s", "small")
		f.read("a", 95, 95)
		main := f.try("a", "claude/s", "large")
		f.accept(main)
		f.accept(title)
		f.lives("a", "claude/s", "small")
		f.lives("a", "claude/s", "large")
	})
}

func TestAccountWideBlockersMoveEachModelToTheSameAccount(t *testing.T) {
	f := open(t, "a", "b", "c")
	f.serve("a", "claude/s", "small")
	f.serve("a", "claude/s", "large")
	f.reject(f.try("a", "claude/s", "small"), weekGone)
	attempt := f.try("b", "claude/s", "small", "a")
	f.accept(attempt)
	f.read("b", 90, 90)
	f.serve("b", "claude/s", "large")
	f.lives("b", "claude/s", "large")
}

func TestANewModelGoesWhereTheSessionWasLast(t *testing.T) {
	for _, c := range []struct {
		newest, want string
		blocked      bool
	}{
		{newest: "a", want: "a"},
		{newest: "a", want: "c", blocked: true},
	} {
		f := open(t, "b", "c", "a")
		for i, account := range []string{"a", "b", "c"} { // used last, first, second
			f.now = start.Add(time.Duration([]int{3, 1, 2}[i]) * time.Minute)
			imported := fmt.Sprintf(`{"format":1,"bindings":[{"session":"claude/s","model":"%d","account":%q,"bound_by":"initial","last_used":%q}]}`,
				i, account, f.now.Format(time.RFC3339))
			_, err := f.Import(strings.NewReader(imported), f.now)
			f.must(err)
		}
		if c.blocked {
			f.reject(f.try(c.newest, "claude/s", "0"), weekGone)
		}
		f.try(c.want, "claude/s", "new")
	}
}

func TestRequestsWithoutASessionShareNothing(t *testing.T) {
	f := open(t, "a", "b")
	first := f.try("a", "", "m")
	if f.accept(first) != 0 {
		t.Error("a request without a session has something to wait for")
	}
	f.read("a", 90, 90)
	f.try("b", "", "m")
	if n := f.Stats().Bindings; n != 0 {
		t.Errorf("%d bindings", n)
	}
}

func TestPlacedRequestsBindNothingAndStayWithTheSession(t *testing.T) {
	f := open(t, "a", "b")
	ask := func() placement.Decision {
		f.attempts++
		d, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", At: f.now})
		f.must(err)
		return d
	}
	ask()
	f.accept(f.attempts)
	f.lives("", "claude/s", "m")
	f.serve("a", "claude/s", "m")
	f.read("a", 95, 95)
	if d := ask(); d.Account != id("a") || d.How != placement.HowBound {
		t.Errorf("placed on %s, %s", d.Account, d.How)
	}
}

func TestDanglingBindingsAreInert(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.configs = f.configs[1:]
	f.recover()
	f.read("b", 10, 10)
	attempt := f.try("b", "claude/s", "m")
	f.lives("a", "claude/s", "m")
	f.accept(attempt)
	f.lives("b", "claude/s", "m")
	view, _ := f.Session("claude/s")
	if view.Bindings[0].Cause != "removed" {
		t.Errorf("cause = %q", view.Bindings[0].Cause)
	}
}
