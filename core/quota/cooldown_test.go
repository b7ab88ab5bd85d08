package quota

import (
	"testing"
	"time"
)

func TestCooldowns(t *testing.T) {
	throttle := func(hint time.Duration) time.Duration {
		return throttled(Rejection{RetryAfter: hint}, start).Until.Sub(start)
	}
	if throttle(0) != 30*time.Second || throttle(7*time.Second) != 7*time.Second || throttle(100*time.Hour) != time.Hour {
		t.Errorf("pauses are %v, %v, %v", throttle(0), throttle(7*time.Second), throttle(100*time.Hour))
	}
	for _, c := range []struct {
		name string
		fail func(Cooldown, time.Time) Cooldown
		want []time.Duration
	}{
		{"network", Cooldown.unreachable,
			[]time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}},
		{"credential", Cooldown.withoutCredential, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 2 * time.Minute}},
	} {
		var pause Cooldown
		for i, want := range c.want {
			pause = c.fail(pause, start)
			if got := max(pause.Until.Sub(start), 0); got != want {
				t.Errorf("%s: pause after failure %d = %v, want %v", c.name, i+1, got, want)
			}
		}
		later := start.Add(troubleMemory + 1)
		if got := c.fail(pause, later); got.Failures != 1 {
			t.Errorf("%s: after a while %d failures in a row", c.name, got.Failures)
		}
	}
}

func TestTroubleOnTheWayEndsWithAnAnswer(t *testing.T) {
	for _, cause := range []Cause{CauseNetwork, CauseCredential} {
		a := newAccount()
		a.refuse(Rejection{Cause: cause}, "m")
		if got := a.Trouble(start); got != cause {
			t.Errorf("trouble = %q, want %q from the first failure on", got, cause)
		}
		a.Reached(start.Add(-time.Second))
		if a.Trouble(start) == "" {
			t.Errorf("an attempt from before the trouble with the %s ended it", cause)
		}
		if a.Trouble(start.Add(troubleMemory+1)) != "" {
			t.Errorf("trouble with the %s is remembered for too long", cause)
		}
		a.Reached(start)
		if a.Trouble(start) != "" || a.Cooling(start) {
			t.Errorf("an attempt from after the trouble with the %s did not end it", cause)
		}
	}
}

func TestCredentialThatCameEndsItsPause(t *testing.T) {
	a := newAccount()
	a.refuse(Rejection{Cause: CauseCredential}, "m")
	a.refuse(Rejection{Cause: CauseThrottle}, "m")
	if pauses := a.Cooldowns(start); len(pauses) != 2 || !a.Paused(start) || a.Blocked("m", true, start) {
		t.Errorf("pauses = %v, want a throttle and a credential, and no blocker", pauses)
	}
	a.CredentialCame()
	if pauses := a.Cooldowns(start); len(pauses) != 1 || pauses[0].Cause != CauseThrottle {
		t.Errorf("pauses = %v, want the throttle alone", pauses)
	}
}

func TestAClockThatGoesBackLengthensNoCooldown(t *testing.T) {
	const back = 3 * time.Hour
	seen, at := start.Add(-10*time.Second), start.Add(-back)
	a := newAccount()
	a.Reject(Rejection{Cause: CauseThrottle}, "m", seen, seen)
	a.Reject(Rejection{Cause: CauseCredential}, "m", seen, seen)
	a.Unreachable(seen)
	a.Unreachable(seen)
	left := map[Cause]time.Duration{}
	for _, c := range []Cooldown{a.Throttle, a.Credential, a.Network} {
		left[c.Cause] = c.Until.Sub(start)
	}
	a.NotLaterThan(at, start)
	for _, c := range []Cooldown{a.Throttle, a.Credential, a.Network} {
		if got := c.Until.Sub(at); got != left[c.Cause] || c.Since.After(at) {
			t.Errorf("%s: %v left instead of %v, since %v", c.Cause, got, left[c.Cause], c.Since)
		}
	}
	a.Reached(at)
	if pauses := []Cooldown{a.Credential, a.Network}; pauses[0].Failures+pauses[1].Failures != 0 {
		t.Errorf("an answer did not end the trouble: %+v", pauses)
	}
	if a.NotLaterThan(at.Add(-back), at); a.Network != (Cooldown{}) {
		t.Errorf("a cooldown came out of nothing: %+v", a.Network)
	}
}
