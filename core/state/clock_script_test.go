package state

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// clockScript moves the wall clock by the same step a number of times.
type clockScript struct {
	start time.Time
	steps int
	step  time.Duration
}

func clockScripts(t *testing.T) map[string]clockScript {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "journal", "testdata", "hostile", "clock.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatal(rows, err)
	}
	scripts := map[string]clockScript{}
	for _, row := range rows[1:] {
		begins, errStart := time.Parse(time.RFC3339, row[1])
		steps, errSteps := strconv.Atoi(row[2])
		seconds, errStep := strconv.ParseFloat(row[3], 64)
		if errStart != nil || errSteps != nil || errStep != nil {
			t.Fatal(row)
		}
		scripts[row[0]] = clockScript{begins, steps, time.Duration(seconds * float64(time.Second))}
	}
	return scripts
}

// underScript is a store whose clock a script moves: a is emptier than b, claude/s lives there, and a request of it is under
// way.
type underScript struct {
	*fixture
	clockScript
	inFlight uint64
	entries  uint64 // before the clock moves
}

func underClock(t *testing.T, script clockScript) *underScript {
	u := &underScript{fixture: openAt(t, script.start, "a", "b"), clockScript: script}
	u.serve("a", "claude/s", "m")
	u.inFlight = u.try("a", "claude/s", "m")
	return u
}

// play moves the clock, with a tick after each step as if the process had been stopped in between.
func (u *underScript) play() {
	u.entries = u.Stats().Entries
	for range u.steps {
		u.pass(u.step)
	}
}

func (u *underScript) shown(account, window string) quota.WindowView {
	u.t.Helper()
	for _, a := range u.Accounts(u.now) {
		for _, w := range a.Windows {
			if a.ID.Name == account && w.ID == window {
				return w
			}
		}
	}
	u.t.Fatalf("%s has no window %s", account, window)
	return quota.WindowView{}
}

func (u *underScript) mustShow(account, window string, state quota.ViewState) {
	u.t.Helper()
	if w := u.shown(account, window); w.State != state {
		u.t.Errorf("%s of %s is shown as %s, want %s", window, account, w.State, state)
	}
}

func (u *underScript) believed(want bool) {
	u.t.Helper()
	if got := !u.Stats().ClockHeld; got != want {
		u.t.Errorf("the clock is believed: %v", got)
	}
}

// inHours wants the five-hour window of a to be rejected, with a reset in so many hours.
func (u *underScript) inHours(hours float64) {
	u.t.Helper()
	attempt := u.try("a", "", "m")
	u.reject(attempt, quota.Rejection{Cause: quota.CauseQuota, WindowID: "5h", ClearsAt: u.now.Add(time.Duration(hours * float64(time.Hour)))})
	u.mustShow("a", "5h", quota.ViewExhausted)
}

// slept is what holds after a long pause, whatever the other clocks of the machine say of it.
func slept(u *underScript) {
	u.inHours(2)
	u.play()
	u.believed(true)
	u.mustShow("a", "5h", quota.ViewRolled)
	if w := u.shown("a", "5h"); !w.Estimated {
		u.t.Error("an estimate is shown as an observation")
	}
	if n := u.Stats().LiveSessions; n != 0 {
		u.t.Errorf("%d sessions are still live", n)
	}
	u.serve("a", "claude/s", "m") // the first request after it
}

func steadyDay(u *underScript) {
	u.play()
	u.believed(true)
	if d := u.now.Sub(u.start); d < 20*time.Second {
		u.t.Fatalf("the script took %v", d)
	}
	u.serve("a", "claude/s", "m")
}

// afterwards is what each script's rule is, in so far as it is about state.
func afterwards() map[string]func(u *underScript) {
	return map[string]func(u *underScript){
		"sleep-9h-across-5h-reset": slept,
		"vm-snapshot-restore":      slept,
		"sleep-8d-across-weekly": func(u *underScript) {
			attempt := u.try("a", "", "m")
			u.must(u.ForgetQuota(id("a"), u.now)) // with it the reset
			u.reject(attempt, weekGone)
			u.pass(week - time.Second)
			u.mustShow("a", "weekly", quota.ViewExhausted)
			u.read("b", 50, 50)
			u.step -= week - time.Second
			u.play()
			if w := u.shown("a", "weekly"); w.UsedPercent != nil {
				u.t.Errorf("a is shown as %s with %v %% used: nobody said so", w.State, *w.UsedPercent)
			}
			u.read("b", 50, 50)
			u.try("b", "claude/new", "m")                          // what is known comes first
			u.reject(u.try("a", "claude/new", "m", "b"), weekGone) // and what is not is tried once
			if _, d := u.ask("claude/newer", "m", "b"); d.Placed {
				u.t.Error("placed on a window that was rejected again")
			}
		},
		"ntp-step-back-1h": func(u *underScript) {
			reset := u.shown("a", "5h").ResetsAt
			u.play()
			u.believed(true)
			if w := u.shown("a", "5h"); !w.ResetsAt.Equal(reset) || w.ObservedAt.After(u.now) {
				u.t.Errorf("resets at %v, before %v; observed at %v", w.ResetsAt, reset, w.ObservedAt)
			}
			if _, err := u.MoveSession("claude/s", id("b"), u.now); err != nil {
				u.t.Fatal(err)
			}
			u.recover()
			u.lives("b", "claude/s", "m") // the later entry, though its time is earlier
		},
		"ntp-step-forward-1h": func(u *underScript) {
			u.inHours(0.5)
			u.try("b", "claude/new", "m")
			u.play()
			u.believed(true)
			u.mustShow("a", "5h", quota.ViewRolled) // an estimate, to be checked, and no observed 0 %
			if s := u.Stats(); s.InFlight != 2 || s.Reservations != 1 {
				u.t.Errorf("work in flight expired: %+v", s)
			}
		},
		"wall-jump-to-1970": implausible,
		"wall-jump-to-2099": implausible,
		"dst-fall-back":     steadyDay,
		"dst-spring":        steadyDay,
		"leap-second-repeat": func(u *underScript) {
			u.play()
			if _, err := u.MoveSession("claude/s", id("b"), u.now); err != nil {
				u.t.Fatal(err)
			}
			u.recover()
			u.lives("b", "claude/s", "m")
		},
		"leap-smear": steadyDay,
		"sigstop-90s": func(u *underScript) {
			u.play()
			if n := u.Stats().Entries - u.entries; n > 4 { // the clocks of two accounts, the demand, the session
				u.t.Errorf("%d entries were written after one pause", n)
			}
			before := u.Stats().Entries
			u.pass(time.Second)
			if u.Stats().Entries != before {
				u.t.Error("the pause was made up for a second time")
			}
		},
		"month-end-reset": func(u *underScript) {
			reading := quota.Reading{Declaration: config("a").Windows[0], State: quota.AwaitingFirstUse, HasUsed: true}
			u.pass(time.Second)
			u.must(u.Observe(id("a"), []quota.Reading{reading}, u.now, u.now))
			accepted := u.now
			u.accept(u.inFlight)
			u.play()
			if w := u.shown("a", "5h"); !w.ResetsAt.Equal(accepted.Add(fiveHours)) || !w.Predicted {
				u.t.Errorf("resets at %v, want %v", w.ResetsAt, accepted.Add(fiveHours))
			}
		},
		"y2038": func(u *underScript) {
			u.play()
			reset := u.now.Add(4 * time.Hour)
			u.read("a", 30, 30)
			u.pass(2 * time.Minute)
			u.recover()
			if w := u.shown("a", "5h"); !w.ResetsAt.Equal(reset) || w.ResetsAt.Unix() <= 1<<31 {
				u.t.Errorf("resets at %v, want %v", w.ResetsAt, reset)
			}
		},
	}
}

func implausible(u *underScript) {
	u.inHours(2)
	u.play()
	u.believed(false)
	u.mustShow("a", "5h", quota.ViewExhausted)
	u.serve("b", "claude/new", "m")
	u.now = u.start.Add(3 * time.Hour) // put right
	u.pass(time.Second)
	u.believed(true)
	u.serve("a", "claude/s", "m")
}

// years that a row may hold: none from before the script, none from after what it leads to.
var years = regexp.MustCompile(`"(\d{4})-\d{2}-\d{2}T`)

func TestClockScripts(t *testing.T) {
	rules := afterwards()
	for name, script := range clockScripts(t) {
		t.Run(name, func(t *testing.T) {
			rule, ok := rules[name]
			if !ok {
				t.Fatal("nothing is asserted")
			}
			u := underClock(t, script)
			rule(u)
			u.pass(2 * time.Minute)
			if d := u.demand; d.Hours < 0 || d.Events < 0 || d.Ended < 0 {
				t.Errorf("something took a negative time: %+v", d)
			}
			u.must(u.Close())
			kept := dump(t, u.db)
			u.recover()
			if got := dump(t, u.db); got != kept {
				t.Errorf("came back as\n%s\nit was\n%s", got, kept)
			}
			for _, year := range years.FindAllStringSubmatch(kept, -1) {
				if !strings.HasPrefix(year[1], "20") || year[1] > "2039" {
					t.Errorf("the year %s was written", year[1])
				}
			}
			if strings.Contains(kept, "+0") {
				t.Errorf("a time is not UTC:\n%s", kept)
			}
		})
	}
	for name := range rules {
		if _, ok := clockScripts(t)[name]; !ok {
			t.Errorf("no script %s", name)
		}
	}
}
