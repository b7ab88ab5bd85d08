package plugin

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// healthService is the name under which go-plugin's servers report their health.
const healthService = "plugin"

// running is what an instance needs of the process behind it.
type running interface {
	pid() int
	// end stops it, within grace and killGrace.
	end(grace time.Duration)
	// done is closed when it is gone.
	done() <-chan struct{}
	// exit says how it ended, once done is closed.
	exit() string
}

// instance is one configured adapter, from its process to its checked profile.
type instance struct {
	spec        Spec
	generation  uint64
	process     running
	conn        grpc.ClientConnInterface
	hangUp      func() // closes conn
	digest      string
	digestState DigestState
	description *pluginv1.DescribeResponse
	services    []string
	profile     *providerv1.Profile
	startedAt   time.Time
	calls       *gate

	mu    sync.Mutex // guards cause
	cause *Failure
}

func (i *instance) offers(service string) bool { return slices.Contains(i.services, service) }

// account returns the configured account of that name.
func (i *instance) account(name string) (*pluginv1.Account, bool) {
	for _, a := range i.spec.Config.GetAccounts() {
		if a.GetName() == name {
			return a, true
		}
	}
	return nil, false
}

// condemn ends the instance at once, for a reason that its exit status does not tell.
func (i *instance) condemn(f *Failure) {
	i.mu.Lock()
	if i.cause == nil {
		i.cause = f
	}
	i.mu.Unlock()
	i.process.end(0)
}

// whyEnded tells why it ended.
func (i *instance) whyEnded() Failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cause != nil {
		return *i.cause
	}
	return Failure{Reason: ReasonExited, Detail: "adapter ended by itself"}
}

// watchHealth asks for a sign of life now and then, and ends the instance when three in a row fail to come.
func (i *instance) watchHealth(ctx context.Context, t timing) {
	ticker := time.NewTicker(t.healthEvery)
	defer ticker.Stop()
	misses := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.process.done():
			return
		case <-ticker.C:
		}
		if i.healthy(ctx, t.healthTime) {
			misses = 0
			continue
		}
		if misses++; misses >= t.healthMisses && ctx.Err() == nil {
			i.condemn(&Failure{Reason: ReasonHealth, Detail: "adapter gave no sign of life"})
			return
		}
	}
}

func (i *instance) healthy(ctx context.Context, deadline time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(i.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	return err == nil && answer.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}

// retire lets running calls finish, within the drain time or until ctx ends, and stops the process.
func (i *instance) retire(ctx context.Context, t timing) {
	i.calls.close()
	drain, cancel := context.WithTimeout(ctx, t.drain)
	defer cancel()
	deadline, _ := drain.Deadline()
	_, _ = pluginv1.NewPluginClient(i.conn).Drain(drain, &pluginv1.DrainRequest{DeadlineMs: time.Until(deadline).Milliseconds()})
	i.calls.wait(drain)
	grace := t.termGrace
	if ctx.Err() != nil {
		grace = 0
	}
	i.process.end(grace)
	i.release()
}

// release gives up what is left when the process has ended.
func (i *instance) release() {
	i.calls.close()
	i.hangUp()
}
