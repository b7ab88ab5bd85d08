package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/noria-dev/noria/core/internal/clock"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// fakeProcess is a process without a process.
type fakeProcess struct {
	number int
	gone   chan struct{}
	once   sync.Once
	mu     sync.Mutex // guards below
	status string
	grace  time.Duration
}

func (p *fakeProcess) pid() int { return p.number }

func (p *fakeProcess) end(grace time.Duration) {
	p.mu.Lock()
	p.grace = grace
	p.mu.Unlock()
	p.once.Do(func() { close(p.gone) })
}

func (p *fakeProcess) done() <-chan struct{} { return p.gone }

func (p *fakeProcess) exit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// crash ends it by itself.
func (p *fakeProcess) crash(status string) {
	p.mu.Lock()
	p.status = status
	p.mu.Unlock()
	p.once.Do(func() { close(p.gone) })
}

// fakeConn answers calls by function.
type fakeConn struct {
	mu     sync.Mutex // guards below
	answer func(ctx context.Context, method string, req, reply any) error
	calls  map[string]int
}

func (c *fakeConn) Invoke(ctx context.Context, method string, req, reply any, _ ...grpc.CallOption) error {
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[method]++
	answer := c.answer
	c.mu.Unlock()
	if method == grpc_health_v1.Health_Check_FullMethodName && answer == nil {
		reply.(*grpc_health_v1.HealthCheckResponse).Status = grpc_health_v1.HealthCheckResponse_SERVING
		return nil
	}
	if answer == nil {
		return nil
	}
	return answer(ctx, method, req, reply)
}

func (c *fakeConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

func (c *fakeConn) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

// stage is a supervisor whose starts are played.
type stage struct {
	t          *testing.T
	supervisor *supervisor

	mu        sync.Mutex // guards below
	fail      []*Failure // of the next starts; nil succeeds
	startTime time.Duration
	starts    []time.Time
	instances []*instance
	published []*instance
	withdrawn int
	states    []State
}

func newStage(t *testing.T, fail ...*Failure) *stage {
	s := &stage{t: t, fail: fail}
	s.supervisor = &supervisor{
		clock: clock.Wall{}, timing: designTiming(), chance: func() float64 { return 1 }, output: newTestOutput(io.Discard),
		launch: s.launch,
		publish: func(i *instance) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.published = append(s.published, i)
		},
		withdraw: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.withdrawn++
		},
		onState: func(info Info) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.states = append(s.states, info.State)
		},
	}
	return s
}

func (s *stage) launch(ctx context.Context, spec Spec, progress func(State)) (*instance, *Failure) {
	progress(StateStarting)
	s.mu.Lock()
	s.starts = append(s.starts, time.Now())
	takes := s.startTime
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, &Failure{Reason: ReasonStartTimeout}
		}
	}
	if f := s.nextFailure(); f != nil {
		return nil, f
	}
	progress(StateConfiguring)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &instance{spec: spec, process: &fakeProcess{number: 100 + len(s.instances), gone: make(chan struct{})}, conn: &fakeConn{},
		hangUp: func() {}, digest: "d", startedAt: time.Now(), calls: newGate(), description: &pluginv1.DescribeResponse{}}
	s.instances = append(s.instances, i)
	return i, nil
}

// nextFailure is a copy: the supervisor writes into it.
func (s *stage) nextFailure() *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fail) == 0 {
		return nil
	}
	f := s.fail[0]
	s.fail = s.fail[1:]
	if f == nil {
		return nil
	}
	again := *f
	return &again
}

// begin starts it; the end of the test stops it.
func (s *stage) begin(spec Spec) error {
	s.t.Helper()
	return <-s.supervisor.begin(spec)
}

func (s *stage) end() {
	s.supervisor.end(context.Background())
	<-s.supervisor.done
}

func (s *stage) instance(n int) *instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances[n]
}

func (s *stage) process(n int) *fakeProcess { return s.instance(n).process.(*fakeProcess) }

func (s *stage) startCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.starts)
}

// gaps are the times between starts.
func (s *stage) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(s.starts); i++ {
		gaps = append(gaps, s.starts[i].Sub(s.starts[i-1]))
	}
	return gaps
}

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
