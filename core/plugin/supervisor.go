package plugin

import (
	"context"
	"reflect"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/noria-dev/noria/core/internal/clock"
)

// supervisor keeps one adapter as it is wished for. One goroutine, run, does all of it; callers only change the wish, so
// a crash makes one restart however many of them see it.
type supervisor struct {
	clock    clock.Clock
	timing   timing
	launch   func(ctx context.Context, spec Spec, progress func(State)) (*instance, *Failure)
	publish  func(*instance) // nil: away for now
	withdraw func()          // away for good, or as long as disabled
	onState  func(Info)
	chance   func() float64
	output   *output
	// ending ends when what still drains is to be killed.
	ending   context.Context
	retiring sync.WaitGroup

	// wake holds one: the wish changed. It may be late, when the new wish was seen without it; so it is no more than a
	// reason to look.
	wake chan struct{}
	done chan struct{}

	mu   sync.Mutex // guards below
	wish wish
	info Info
	// running is the digest of the present instance.
	running string
}

// wish is what is to be.
type wish struct {
	spec Spec
	// pending: a start is due although an instance may be running.
	pending bool
	// stop: drain, then stop.
	stop bool
	// settled takes the end of the first attempt; it holds one.
	settled chan error
}

// begin starts the goroutine and returns what takes the result of the first start.
func (s *supervisor) begin(spec Spec) <-chan error {
	s.wake = make(chan struct{}, 1)
	s.done = make(chan struct{})
	s.wish = wish{spec: spec, settled: make(chan error, 1)}
	s.info = Info{Name: spec.Name, State: StateStarting, Digest: DigestUnknown}
	fillFromSpec(&s.info, spec)
	settled := s.wish.settled
	go s.run()
	return settled
}

// apply asks for another spec, or for the same one when its executable is another one now, and returns what takes the
// result; nil when nothing is to be done.
func (s *supervisor) apply(spec Spec, digest string) <-chan error {
	s.mu.Lock()
	same := sameSpec(s.wish.spec, spec) && s.info.State != StateFailed
	changedFile := digest != "" && s.running != "" && digest != s.running
	s.mu.Unlock()
	if same && !changedFile {
		return nil
	}
	return s.change(wish{spec: spec, pending: true})
}

// restart asks for a new process.
func (s *supervisor) restart() <-chan error {
	s.mu.Lock()
	spec := s.wish.spec
	s.mu.Unlock()
	return s.change(wish{spec: spec, pending: true})
}

// end asks for the end.
func (s *supervisor) end() { s.change(wish{stop: true}) }

func (s *supervisor) change(w wish) <-chan error {
	w.settled = make(chan error, 1)
	s.mu.Lock()
	if s.wish.stop {
		s.mu.Unlock()
		w.settled <- ErrClosed
		return w.settled
	}
	if w.stop {
		w.spec = s.wish.spec
	}
	// Whoever waits for the wish before waits for this one now.
	old := s.wish.settled
	s.wish = w
	s.mu.Unlock()
	settle(old, ErrSuperseded)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return w.settled
}

func settle(settled chan error, err error) {
	select {
	case settled <- err:
	default:
	}
}

func (s *supervisor) wished() wish {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wish
}

// run is the life of the supervisor.
func (s *supervisor) run() {
	defer close(s.done)
	defer s.retiring.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var current *instance
	policy := &restartPolicy{}
	for {
		w := s.wished()
		switch {
		case w.stop:
			s.shutDown(w, current)
			return
		case w.spec.Disabled:
			s.disable(w, current)
			current = nil
			s.await(ctx, w, 0)
		case current != nil && !w.pending:
			if failure := s.watch(ctx, w, current); failure != nil {
				s.lost(ctx, w, current, failure, policy)
				current = nil
			}
		default:
			current = s.attempt(ctx, w, current, policy)
		}
	}
}

// watch returns when the wish is another one than w, or why the instance ended.
func (s *supervisor) watch(ctx context.Context, w wish, i *instance) *Failure {
	ctx, cancel := context.WithCancel(ctx)
	var health sync.WaitGroup
	health.Go(func() { i.watchHealth(ctx, s.timing) })
	defer health.Wait()
	defer cancel()
	for ended := false; !ended; {
		select {
		case <-s.wake:
			if s.changed(w) {
				return nil
			}
		case <-i.process.done():
			ended = true
		}
	}
	f := i.whyEnded()
	f.Exit = i.process.exit()
	f.Stderr = s.output.lastLines()
	return &f
}

// lost is for an instance that ended unwanted.
func (s *supervisor) lost(ctx context.Context, w wish, i *instance, f *Failure, policy *restartPolicy) {
	s.publish(nil)
	i.release()
	s.setRunning("")
	s.update(func(info *Info) { info.PID, info.StartedAt = 0, time.Time{} })
	s.await(ctx, w, s.away(f, s.clock.Now().Sub(i.startedAt), policy))
}

// attempt starts what is wished for beside what runs, and swaps when it is ready. When it fails and something runs, that
// stays, with the spec it has.
func (s *supervisor) attempt(ctx context.Context, w wish, current *instance, policy *restartPolicy) *instance {
	switch {
	case w.pending:
		policy.reset()
	case policy.retrying():
		s.update(func(info *Info) { info.Restarts++ })
	}
	next, failure := s.launchUntilChanged(ctx, w, current != nil)
	switch {
	case next != nil:
		s.swap(w, current, next)
		return next
	case s.changed(w):
		return current // the wish is another one: what came of this one does not matter
	case current != nil:
		// Should it have ended meanwhile, it is missed next, and started again as it was.
		s.keep(w, current, failure)
		return current
	}
	wait := s.away(failure, 0, policy)
	s.granted(w)
	settle(w.settled, failure)
	s.await(ctx, w, wait)
	return nil
}

func (s *supervisor) changed(w wish) bool { return s.wished().settled != w.settled }

// granted notes that the wish has had its start.
func (s *supervisor) granted(w wish) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wish.settled == w.settled {
		s.wish.pending = false
	}
}

// launchUntilChanged gives the start up when the wish changes.
func (s *supervisor) launchUntilChanged(ctx context.Context, w wish, swapping bool) (*instance, *Failure) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type launched struct {
		instance *instance
		failure  *Failure
	}
	result := make(chan launched, 1)
	go func() {
		i, f := s.launch(ctx, w.spec, func(state State) {
			if !swapping {
				s.update(func(info *Info) { info.State = state })
			}
		})
		result <- launched{i, f}
	}()
	for {
		select {
		case l := <-result:
			return l.instance, l.failure
		case <-s.wake:
			if s.changed(w) {
				cancel()
			}
		}
	}
}

// swap puts the new instance in place and drains the old one beside it.
func (s *supervisor) swap(w wish, old, next *instance) {
	s.publish(next)
	s.granted(w)
	s.setRunning(next.digest)
	s.update(func(info *Info) {
		info.State = StateReady
		info.Failure, info.RetryAt = nil, time.Time{}
		info.PID, info.StartedAt = next.process.pid(), next.startedAt
		info.SHA256, info.Digest = next.digest, next.digestState
		info.Version, info.SDK = next.description.GetVersion(), next.description.GetSdkVersion()
		info.Services = next.services
		info.Environment = next.description.GetEnvironment()
		fillFromSpec(info, w.spec)
	})
	settle(w.settled, nil)
	if old != nil {
		s.retiring.Go(func() { old.retire(s.ending, s.timing) })
	}
}

// keep leaves the running instance, and its spec, in place after a swap that failed.
func (s *supervisor) keep(w wish, current *instance, f *Failure) {
	s.mu.Lock()
	if s.wish.settled == w.settled {
		s.wish.spec, s.wish.pending = current.spec, false
	}
	s.mu.Unlock()
	f.At = s.clock.Now()
	s.update(func(info *Info) { info.Failure = f })
	settle(w.settled, f)
}

func (s *supervisor) setRunning(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = digest
}

// away shows the failure and returns how long to wait before the next start; 0: until the wish changes.
func (s *supervisor) away(f *Failure, readyFor time.Duration, policy *restartPolicy) (wait time.Duration) {
	f.At = s.clock.Now()
	wait, broken := policy.ended(f.At, readyFor, s.chance())
	state := StateBackoff
	switch {
	case f.Permanent:
		state, wait = StateFailed, 0
	case broken:
		state = StateFailed
		loop := *f
		loop.Reason, loop.Detail = ReasonCrashLoop, "ended five times within a minute, last: "+string(f.Reason)
		f = &loop
	}
	s.update(func(info *Info) {
		info.State, info.Failure = state, f
		if f.SHA256 != "" {
			info.SHA256, info.Digest = f.SHA256, f.Digest
		}
		if info.RetryAt = (time.Time{}); wait > 0 {
			info.RetryAt = f.At.Add(wait)
		}
	})
	s.output.logger.Warn("adapter is away", "reason", string(f.Reason), "exit", f.Exit, "state", string(state), "retry_in", wait.String())
	return wait
}

// await returns when the wish is another one than w, or after d unless that is 0.
func (s *supervisor) await(ctx context.Context, w wish, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-s.wake:
			if s.changed(w) {
				return
			}
		case <-due:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *supervisor) disable(w wish, current *instance) {
	s.withdraw()
	s.setRunning("")
	if current != nil {
		s.retiring.Go(func() { current.retire(s.ending, s.timing) })
	}
	s.update(func(info *Info) {
		info.State, info.PID, info.StartedAt, info.Failure, info.RetryAt = StateDisabled, 0, time.Time{}, nil, time.Time{}
		fillFromSpec(info, w.spec)
	})
	s.granted(w)
	settle(w.settled, nil)
}

func (s *supervisor) shutDown(w wish, current *instance) {
	s.withdraw()
	if current != nil {
		s.update(func(info *Info) { info.State = StateDraining })
		current.retire(s.ending, s.timing)
	}
	s.update(func(info *Info) {
		info.State, info.PID, info.StartedAt, info.RetryAt = StateStopped, 0, time.Time{}, time.Time{}
	})
	settle(w.settled, nil)
}

func fillFromSpec(info *Info, spec Spec) {
	info.Provider, info.Path, info.Dev = spec.Provider, spec.Path, spec.Dev
	info.Accounts = 0
	for _, a := range spec.Config.GetAccounts() {
		if a.GetEnabled() {
			info.Accounts++
		}
	}
}

// update changes what is shown and tells of it.
func (s *supervisor) update(change func(*Info)) {
	s.mu.Lock()
	before := s.info.State
	change(&s.info)
	info := s.info
	s.mu.Unlock()
	if s.onState != nil && info.State != before {
		s.onState(info)
	}
}

// snapshot is what is shown now.
func (s *supervisor) snapshot() Info {
	s.mu.Lock()
	info := s.info
	s.mu.Unlock()
	info.DroppedLines = s.output.droppedLines()
	info.Stderr = s.output.lastLines()
	return info
}

// sameSpec compares; a configuration is compared by its content.
func sameSpec(a, b Spec) bool {
	if !proto.Equal(a.Config, b.Config) {
		return false
	}
	a.Config, b.Config = nil, nil
	return reflect.DeepEqual(a, b)
}
