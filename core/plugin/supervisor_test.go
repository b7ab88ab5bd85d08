package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

func exit7() *Failure { return &Failure{Reason: ReasonExited, Exit: "exit status 7"} }

func exited(i *instance) bool {
	select {
	case <-i.process.done():
		return true
	default:
		return false
	}
}

func TestStatesOfALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, exit7(), nil)
		if err := s.begin(Spec{Name: "p"}); err == nil {
			t.Fatal("first start did not fail")
		}
		synctest.Wait()
		time.Sleep(backoffFirst)
		synctest.Wait()
		s.end()
		want := []State{StateBackoff, StateStarting, StateConfiguring, StateReady, StateDraining, StateStopped}
		if !slices.Equal(s.states, want) {
			t.Errorf("states %v, want %v", s.states, want)
		}
	})
}

func TestBackoffDoublesAndTheFifthExitInAMinuteOpensTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, exit7(), exit7(), exit7(), exit7(), exit7(), nil)
		_ = s.begin(Spec{Name: "p"})
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
		if got := s.gaps(); !slices.Equal(got, want) {
			t.Errorf("gaps %v, want %v", got, want)
		}
		info := s.supervisor.snapshot()
		if info.State != StateFailed || info.Failure.Reason != ReasonCrashLoop || info.Failure.Exit != "exit status 7" {
			t.Errorf("after five exits: %s, %v", info.State, info.Failure)
		}
		time.Sleep(breakerPause)
		synctest.Wait()
		if info := s.supervisor.snapshot(); info.State != StateReady || info.Restarts != 5 {
			t.Errorf("after the pause: %s, %d restarts", info.State, info.Restarts)
		}
		s.end()
	})
}

func TestBackoffStopsAtThirtySecondsAndStartsAnewAfterAMinuteReady(t *testing.T) {
	p := &restartPolicy{}
	now := time.Unix(0, 0)
	var waits []time.Duration
	for range 10 {
		now = now.Add(20 * time.Second) // never five in a minute
		wait, broken := p.ended(now, 0, 1)
		if broken {
			t.Fatal("breaker opened")
		}
		waits = append(waits, wait)
	}
	if waits[0] != 250*time.Millisecond || waits[9] != 30*time.Second || waits[7] != 30*time.Second {
		t.Errorf("waits %v", waits)
	}
	if wait, _ := p.ended(now.Add(time.Hour), 59*time.Second, 1); wait != 30*time.Second {
		t.Errorf("after 59 s ready: %v", wait)
	}
	if wait, _ := p.ended(now.Add(2*time.Hour), 60*time.Second, 1); wait != 250*time.Millisecond {
		t.Errorf("after 60 s ready: %v", wait)
	}
	if low, high := jitter(time.Minute, 0), jitter(time.Minute, 0.999999); low < 44*time.Second || high > time.Minute {
		t.Errorf("jitter from %v to %v", low, high)
	}
}

func TestWhatCannotGetBetterByItselfIsNotTriedAgain(t *testing.T) {
	for _, reason := range []Reason{ReasonDigestMismatch, ReasonHandshakeProtocol, ReasonConfig} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, &Failure{Reason: reason, Permanent: true})
				err := s.begin(Spec{Name: "p"})
				var f *Failure
				if !errors.As(err, &f) || f.Reason != reason {
					t.Errorf("begin: %v", err)
				}
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if info := s.supervisor.snapshot(); info.State != StateFailed || s.startCount() != 1 || !info.RetryAt.IsZero() {
					t.Errorf("a day later: %s after %d starts", info.State, s.startCount())
				}
				if err := <-s.supervisor.restart(); err != nil {
					t.Errorf("restart by hand: %v", err)
				}
				s.end()
			})
		})
	}
}

func TestOneCrashMakesOneRestartHoweverManySeeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if err := s.begin(Spec{Name: "p"}); err != nil {
			t.Fatal(err)
		}
		c := &Client{timing: designTiming()}
		c.changed = make(chan struct{})
		c.accounts.Store(&map[string]*account{})
		c.adopt(s.instance(0))
		s.process(0).crash("exit status 7")
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { _, _ = c.Unavailable(context.Background(), nil) })
		}
		callers.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		if info := s.supervisor.snapshot(); s.startCount() != 2 || info.Restarts != 1 || info.State != StateReady {
			t.Errorf("%d starts, %d restarts, %s", s.startCount(), info.Restarts, info.State)
		}
		s.end()
	})
}

func TestThreeMissedSignsOfLifeEndAnAdapter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if err := s.begin(Spec{Name: "p"}); err != nil {
			t.Fatal(err)
		}
		conn := s.instance(0).conn.(*fakeConn)
		misses := 2
		conn.mu.Lock()
		conn.answer = func(ctx context.Context, _ string, _, reply any) error {
			conn.mu.Lock()
			defer conn.mu.Unlock()
			if misses--; misses < 0 {
				reply.(*grpc_health_v1.HealthCheckResponse).Status = grpc_health_v1.HealthCheckResponse_SERVING
				misses = 2
			} else {
				return status.Error(codes.DeadlineExceeded, "")
			}
			return nil
		}
		conn.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s.startCount() != 1 {
			t.Fatal("two misses in a row ended it")
		}
		conn.mu.Lock()
		conn.answer = func(ctx context.Context, _ string, _, _ any) error { <-ctx.Done(); return ctx.Err() }
		conn.mu.Unlock()
		hung := time.Now()
		<-s.process(0).gone
		if took := time.Since(hung); took > 34*time.Second {
			t.Errorf("ended after %v", took)
		}
		time.Sleep(backoffFirst)
		synctest.Wait()
		if info := s.supervisor.snapshot(); info.Restarts != 1 || info.State != StateReady {
			t.Errorf("%d restarts, %s", info.Restarts, info.State)
		}
		s.end()
	})
}

func TestSwapHasNoGapAndDrainsTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if err := s.begin(Spec{Name: "p"}); err != nil {
			t.Fatal(err)
		}
		old := s.instance(0)
		if !old.calls.enter() {
			t.Fatal("no call may begin")
		}
		s.mu.Lock()
		s.startTime = 3 * time.Second
		s.mu.Unlock()
		settled := s.supervisor.apply(Spec{Name: "p", Path: "/new"}, "")
		time.Sleep(2 * time.Second)
		if s.supervisor.snapshot().State != StateReady || exited(old) {
			t.Error("the old one does not serve while the new one starts")
		}
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if slices.Contains(s.published, nil) || len(s.published) != 2 {
			t.Errorf("published %v, want old and new with nothing between", s.published)
		}
		if exited(old) {
			t.Error("the old one ended with a call running")
		}
		old.calls.leave()
		synctest.Wait()
		if !exited(old) || s.process(0).grace != termGrace {
			t.Error("the old one goes on after its last call")
		}
		s.end()
	})
}

func TestDrainEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if err := s.begin(Spec{Name: "p"}); err != nil {
			t.Fatal(err)
		}
		old := s.instance(0)
		old.calls.enter()
		if err := <-s.supervisor.restart(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-old.process.done()
		if took := time.Since(began); took != designTiming().drain {
			t.Errorf("drained for %v", took)
		}
		old.calls.leave()
		s.end()
	})
}

func TestEndCutsNoDrainShort(t *testing.T) {
	for name, next := range map[string]Spec{
		"swapped":  {Name: "p", Path: "/new"},
		"disabled": {Name: "p", Disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				must(t, s.begin(Spec{Name: "p"}))
				old := s.instance(0)
				old.calls.enter()
				must(t, <-s.supervisor.apply(next, ""))
				s.supervisor.end()
				synctest.Wait()
				if exited(old) {
					t.Error("ended with a call running")
				}
				old.calls.leave()
				<-s.supervisor.done
				if !exited(old) || s.process(0).grace != termGrace {
					t.Errorf("ended with %v to finish, want %v", s.process(0).grace, termGrace)
				}
			})
		})
	}
}

func TestDrainEndsWithTheTimeOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var kill context.CancelFunc
		s.supervisor.ending, kill = context.WithCancel(t.Context())
		must(t, s.begin(Spec{Name: "p"}))
		old := s.instance(0)
		old.calls.enter()
		must(t, <-s.supervisor.restart())
		s.supervisor.end()
		kill()
		<-s.supervisor.done
		if !exited(old) || s.process(0).grace != 0 {
			t.Errorf("ended with %v to finish, want none", s.process(0).grace)
		}
	})
}

func TestSwapThatFailsLeavesTheOldOneWithItsSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil, &Failure{Reason: ReasonConfig, Permanent: true})
		if err := s.begin(Spec{Name: "p", Path: "/old"}); err != nil {
			t.Fatal(err)
		}
		var f *Failure
		if err := <-s.supervisor.apply(Spec{Name: "p", Path: "/new"}, ""); !errors.As(err, &f) || f.Reason != ReasonConfig {
			t.Errorf("apply: %v", err)
		}
		info := s.supervisor.snapshot()
		if info.State != StateReady || info.Failure == nil || info.Path != "/old" || info.PID != 100 {
			t.Errorf("after a failed swap: %+v", info)
		}
		if s.supervisor.apply(Spec{Name: "p", Path: "/old"}, "d") != nil {
			t.Error("the spec that runs is not the one that is wished for")
		}
		s.end()
	})
}

func TestOldOneThatCrashesDuringAFailedSwapIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, nil, exit7(), nil)
		if err := s.begin(Spec{Name: "p", Path: "/old"}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.startTime = time.Second
		s.mu.Unlock()
		settled := s.supervisor.apply(Spec{Name: "p", Path: "/new"}, "")
		synctest.Wait()
		s.process(0).crash("signal: killed")
		if err := <-settled; err == nil {
			t.Error("swap did not fail")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if info := s.supervisor.snapshot(); info.State != StateReady || s.instance(1).spec.Path != "/old" {
			t.Errorf("a minute later: %s", info.State)
		}
		s.end()
	})
}

func TestSameSpecStartsNothingUnlessTheFileChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		spec := Spec{Name: "p", Config: &pluginv1.Config{ProviderJson: []byte("{}")}}
		if err := s.begin(spec); err != nil {
			t.Fatal(err)
		}
		again := Spec{Name: "p", Config: &pluginv1.Config{ProviderJson: []byte("{}")}}
		if s.supervisor.apply(again, "d") != nil || s.supervisor.apply(again, "") != nil {
			t.Error("equal spec started something")
		}
		if settled := s.supervisor.apply(again, "other"); settled == nil || <-settled != nil || s.startCount() != 2 {
			t.Error("changed executable was not started")
		}
		s.end()
	})
}

func TestLaterWishEndsTheStartOfAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.startTime = 4 * time.Second
		first := s.supervisor.begin(Spec{Name: "p", Path: "/one"})
		synctest.Wait()
		second := s.supervisor.apply(Spec{Name: "p", Path: "/two"}, "")
		began := time.Now()
		if err := <-first; !errors.Is(err, ErrSuperseded) {
			t.Errorf("first: %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("second: %v", err)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("second took %v", took)
		}
		if s.instance(0).spec.Path != "/two" {
			t.Errorf("runs %s", s.instance(0).spec.Path)
		}
		s.end()
	})
}

func TestEndDuringAStartOrABackoffIsPrompt(t *testing.T) {
	for name, prepare := range map[string]func(*stage){
		"start":   func(s *stage) { s.startTime = 4 * time.Second },
		"backoff": func(s *stage) { s.fail = []*Failure{exit7(), exit7(), exit7(), exit7()} },
		"failed":  func(s *stage) { s.fail = []*Failure{{Reason: ReasonConfig, Permanent: true}} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				prepare(s)
				s.supervisor.begin(Spec{Name: "p"})
				synctest.Wait()
				began := time.Now()
				s.end()
				if took := time.Since(began); took > 0 {
					t.Errorf("ended after %v", took)
				}
			})
		})
	}
}

func TestDisabledAdapterIsShownAndNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if err := s.begin(Spec{Name: "p", Disabled: true}); err != nil || s.startCount() != 0 {
			t.Fatalf("begin: %v after %d starts", err, s.startCount())
		}
		if err := <-s.supervisor.apply(Spec{Name: "p"}, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-s.supervisor.apply(Spec{Name: "p", Disabled: true}, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if info := s.supervisor.snapshot(); info.State != StateDisabled || info.PID != 0 || !exited(s.instance(0)) || s.withdrawn != 2 {
			t.Errorf("%+v, withdrawn %d", info, s.withdrawn)
		}
		s.end()
	})
}

// A wish that is seen before the sign that it came leaves the sign behind.
func TestLateSignOfAWishIsNoSecondWish(t *testing.T) {
	t.Run("disabled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			must(t, s.begin(Spec{Name: "p", Disabled: true}))
			s.supervisor.wake <- struct{}{}
			synctest.Wait()
			if s.withdrawn != 1 {
				t.Errorf("withdrawn %d times for one wish", s.withdrawn)
			}
			s.end()
		})
	})
	t.Run("backoff", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, exit7(), nil)
			_ = s.begin(Spec{Name: "p"})
			s.supervisor.wake <- struct{}{}
			time.Sleep(backoffFirst)
			synctest.Wait()
			if got := s.gaps(); !slices.Equal(got, []time.Duration{backoffFirst}) {
				t.Errorf("gaps %v, want the whole wait of %v", got, backoffFirst)
			}
			s.end()
		})
	})
	t.Run("ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			must(t, s.begin(Spec{Name: "p"}))
			conn := s.instance(0).conn.(*fakeConn)
			time.Sleep(6 * time.Second)
			s.supervisor.wake <- struct{}{}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if n := conn.count(grpc_health_v1.Health_Check_FullMethodName); n != 1 {
				t.Errorf("%d signs of life in 12 seconds, want 1", n)
			}
			s.end()
		})
	})
}

func TestWishesFromManySidesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.startTime = 100 * time.Millisecond
		s.supervisor.begin(Spec{Name: "p"})
		var callers sync.WaitGroup
		for n := range 50 {
			callers.Go(func() {
				time.Sleep(time.Duration(n%7) * 30 * time.Millisecond)
				settled := s.supervisor.apply(Spec{Name: "p", Path: fmt.Sprint("/", n)}, "")
				if settled == nil {
					return
				}
				if err := <-settled; err != nil && !errors.Is(err, ErrSuperseded) {
					t.Errorf("apply: %v", err)
				}
			})
		}
		callers.Wait()
		synctest.Wait()
		if info := s.supervisor.snapshot(); info.State != StateReady {
			t.Errorf("state %s", info.State)
		}
		s.end()
		for n, i := range s.instances {
			if !exited(i) {
				t.Errorf("instance %d is left", n)
			}
		}
	})
}
