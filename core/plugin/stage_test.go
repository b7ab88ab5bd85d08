package plugin

import (
	"context"
	"io"
	"sync"
	"testing"
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
	stream func(ctx context.Context) (grpc.ClientStream, error)
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

func (c *fakeConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[method]++
	open := c.stream
	c.mu.Unlock()
	if open == nil {
		return nil, status.Error(codes.Unimplemented, "no streams")
	}
	return open(ctx)
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
		ending: t.Context(),
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
	s.supervisor.end()
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
