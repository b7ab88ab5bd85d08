package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

func TestCallerWaitsFiveSecondsWhileTheAdapterGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var came []string
		d := newDesk(Hooks{OnLateLease: func(account quota.AccountID) { came = append(came, account.String()) }})
		l := &leasing{valid: 5 * time.Minute, generation: "g1", takes: 20 * time.Second}
		d.play(l.answer)
		d.adopt("{}")
		began := time.Now()
		wantLate(t, d, 5*time.Second)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("waited %v", took)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if _, err := d.client.Lease(context.Background(), "work"); err != nil || l.count() != 1 {
			t.Errorf("later: %v after %d calls", err, l.count())
		}
		d.client.DropLease("work")
		l.set(func(l *leasing) { l.takes = time.Second })
		_, _ = d.client.Lease(context.Background(), "work")
		d.client.close()
		if got := strings.Join(came, ", "); got != "p/work" {
			t.Errorf("late leases that came: %q, want the one that was given up", got)
		}
	})
}

// wantLate asks for a lease that does not come from an adapter that is there.
func wantLate(t *testing.T, d *desk, waited time.Duration) {
	t.Helper()
	var late *LateError
	if _, err := d.client.Lease(context.Background(), "work"); !errors.As(err, &late) || late.Waited != waited || errors.Is(err, ErrAway) {
		t.Errorf("lease: %v, want late after %v", err, waited)
	}
}

func TestCredentialThatNeverComesIsLateForWhoeverWaitsToTheEnd(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.takes = time.Hour
		wantLate(t, d, 5*time.Second)
		time.Sleep(22 * time.Second)
		wantLate(t, d, 30*time.Second) // the call ends three seconds later
	})
}

func TestAdapterThatAnswersNothingIsAwayAndNotItsCredentialLate(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.takes, l.stopped = time.Hour, true
		began := time.Now()
		if _, err := d.client.Lease(context.Background(), "work"); !errors.Is(err, ErrAway) || time.Since(began) != 6*time.Second {
			t.Errorf("lease: %v after %v", err, time.Since(began))
		}
	})
}

// With real processes: a credential that does not come is the account's trouble, a process that does not go on is not.
func TestLeaseThatDoesNotComeIsBlamedOnWhatKeepsIt(t *testing.T) {
	for name, c := range map[string]struct {
		action string
		proof  time.Duration
		late   bool
	}{
		"an adapter that waits for it is there": {actHang, time.Minute, true},
		"a stopped process is not":              {actStop, 300 * time.Millisecond, false},
		"a killed one is not":                   {actKill, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			timing := quick()
			timing.leaseWait, timing.leaseProof = 300*time.Millisecond, c.proof
			b := newBench(t, timing, Hooks{})
			b.ready(b.fake(fakeConfig{Actions: map[string]string{"Lease": c.action}}))
			_, err := b.client().Lease(t.Context(), "work")
			var late *LateError
			if errors.As(err, &late) != c.late || errors.Is(err, ErrAway) == c.late {
				t.Errorf("lease: %v, late = %v wanted", err, c.late)
			}
		})
	}
}
