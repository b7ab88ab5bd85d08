package plugin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/noria-dev/noria/core/internal/clock"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// launcher brings adapters from a file to a configured instance.
type launcher struct {
	catalog     *Catalog
	spawner     *spawner
	runDir      string
	hostVersion string
	clock       clock.Clock
	timing      timing
	check       *answerCheck
	generation  atomic.Uint64
}

// launch starts an adapter and returns it ready, after takeProfile took its profile. When it fails, or ctx ends, nothing
// is left of it.
func (l *launcher) launch(ctx context.Context, spec Spec, out *output, progress func(State), takeProfile func(*instance) error) (*instance, *Failure) {
	progress(StateStarting)
	out.forget()
	i, f := l.connect(ctx, spec, out)
	if f == nil {
		progress(StateConfiguring)
		if f = l.configure(ctx, i, takeProfile); f == nil {
			return i, nil
		}
		f = f.of(i.digest, i.digestState)
		i.process.end(l.timing.termGrace)
		i.release()
		if f.Exit == "" {
			f.Exit = i.process.exit()
		}
	}
	if f.Stderr == nil {
		f.Stderr = out.lastLines()
	}
	return nil, f
}

// connect starts the process, or attaches to one, and connects to it.
func (l *launcher) connect(ctx context.Context, spec Spec, out *output) (*instance, *Failure) {
	if spec.Dev {
		out.logger.Warn("adapter is not checked: dev = true", "attached", spec.Reattach != "")
	}
	if spec.Reattach != "" {
		return l.attach(ctx, spec)
	}
	path, digest, state, f := l.catalog.verified(spec)
	if f != nil {
		return nil, f.of(digest, state)
	}
	env := l.environment(ctx, spec, path, digest)
	holder := &processHolder{}
	config := l.clientConfig()
	config.AutoMTLS = true
	config.SkipHostEnv = true
	config.StartTimeout = l.timing.start
	config.UnixSocketConfig = &plugin.UnixSocketConfig{TempDir: l.runDir}
	config.SyncStdout, config.SyncStderr = out, out
	config.RunnerFunc = func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
		cmd.Path, cmd.Args, cmd.Dir = path, []string{spec.Path}, filepath.Dir(spec.Path)
		cmd.Env = append(cmd.Env, env...)
		p := newProcess(l.spawner, out, cmd, dir)
		p.grace, p.killGrace = l.timing.termGrace, l.timing.killGrace
		return p, holder.take(p)
	}
	i := &instance{spec: spec, digest: digest, digestState: state, startedAt: l.clock.Now(), calls: newGate()}
	if f := l.handshake(ctx, i, config, holder); f != nil {
		return nil, f.of(digest, state)
	}
	return i, nil
}

// environment of the adapter. Its own wishes count only as far as the configuration allows anything.
func (l *launcher) environment(ctx context.Context, spec Spec, path, digest string) []string {
	var wishes []string
	if len(spec.Environment) > 0 {
		if d, f := l.catalog.describe(ctx, spec, path, digest); f == nil {
			wishes = d.GetEnvironment()
		}
	}
	return environment(os.Environ(), wishes, spec.Environment)
}

// clientConfig is what both ways to an adapter have in common. go-plugin logs what plugins say, so it gets no logger.
func (l *launcher) clientConfig() *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		Plugins:          plugin.PluginSet{wire.PluginName: connection{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
	}
}

// handshake lets go-plugin start the process and connect.
func (l *launcher) handshake(ctx context.Context, i *instance, config *plugin.ClientConfig, holder *processHolder) *Failure {
	ctx, cancel := context.WithTimeout(ctx, l.timing.start)
	defer cancel()
	line := newDialer()
	config.GRPCDialOptions = line.options()
	// go-plugin takes no context: the end of the process is what makes it return.
	stop := context.AfterFunc(ctx, func() {
		line.cancel()
		holder.end()
	})
	conn, err := line.dial(plugin.NewClient(config))
	if inTime := stop(); err == nil && inTime {
		i.process, i.conn, i.hangUp = holder.process, conn, line.hangUp
		return nil
	}
	line.hangUp()
	holder.end()
	if holder.process == nil {
		return &Failure{Reason: ReasonExecFailed, Detail: "private directory for the socket cannot be made"}
	}
	return holder.process.startFailure()
}

// processHolder hands the process that go-plugin starts to those who may have to end it first.
type processHolder struct {
	mu      sync.Mutex // guards below while go-plugin starts
	process *process
	ended   bool
}

func (h *processHolder) take(p *process) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return context.Canceled
	}
	h.process = p
	return nil
}

func (h *processHolder) end() {
	h.mu.Lock()
	h.ended = true
	p := h.process
	h.mu.Unlock()
	if p != nil {
		p.end(0)
	}
}

// configure takes a connected adapter through Init, Describe, Configure and Profile.
func (l *launcher) configure(ctx context.Context, i *instance, takeProfile func(*instance) error) *Failure {
	if f := l.greet(ctx, i); f != nil {
		return f
	}
	if f := l.applyConfig(ctx, i); f != nil {
		return f
	}
	if f := l.readProfile(ctx, i); f != nil {
		return f
	}
	if err := takeProfile(i); err != nil {
		return &Failure{Reason: ReasonProfile, Detail: l.check.sentence(err.Error()), Permanent: true}
	}
	return nil
}

// greet learns what the adapter is. Init is its first call with a deadline, and so the real test that it is there.
func (l *launcher) greet(ctx context.Context, i *instance) *Failure {
	api := pluginv1.NewPluginClient(i.conn)
	var hello *pluginv1.InitResponse
	if f := l.step(ctx, i, ReasonInit, "Init", func(ctx context.Context) (err error) {
		hello, err = api.Init(ctx, &pluginv1.InitRequest{HostVersion: l.hostVersion})
		return err
	}); f != nil {
		return f
	}
	i.services = hello.GetPluginServices()
	if !namesOnly(i.services, maxServices) || !i.offers(wire.ServicePlugin) || !i.offers(wire.ServiceProvider) {
		return &Failure{Reason: ReasonProtocol, Detail: "adapter does not serve what every adapter must", Permanent: true}
	}
	if i.offers(wire.ServiceSigner) {
		return unsigned()
	}
	if f := l.step(ctx, i, ReasonInit, "Describe", func(ctx context.Context) (err error) {
		i.description, err = api.Describe(ctx, &pluginv1.DescribeRequest{})
		return err
	}); f != nil {
		return f
	}
	return checkDescription(i.description, i.spec)
}

func (l *launcher) applyConfig(ctx context.Context, i *instance) *Failure {
	api := pluginv1.NewPluginClient(i.conn)
	i.generation = l.generation.Add(1)
	config := i.spec.Config
	if config == nil {
		config = &pluginv1.Config{}
	}
	var answer *pluginv1.ConfigureResponse
	if f := l.step(ctx, i, ReasonConfigure, "Configure", func(ctx context.Context) (err error) {
		answer, err = api.Configure(ctx, &pluginv1.ConfigureRequest{Generation: i.generation, Config: config})
		return err
	}); f != nil {
		return f
	}
	found := l.check.diagnostics(answer.GetDiagnostics())
	if !slices.ContainsFunc(found, func(d Diagnostic) bool { return !d.Warning }) {
		return nil
	}
	return &Failure{Reason: ReasonConfig, Detail: "adapter refused its configuration", Permanent: true, Diagnostics: found}
}

func (l *launcher) readProfile(ctx context.Context, i *instance) *Failure {
	var answer *providerv1.ProfileResponse
	f := l.step(ctx, i, ReasonProfile, "Profile", func(ctx context.Context) (err error) {
		answer, err = providerv1.NewProviderClient(i.conn).Profile(ctx, &providerv1.ProfileRequest{})
		return err
	})
	if f != nil {
		return f
	}
	i.profile, f = l.check.profile(answer.GetProfile(), i.spec.Config)
	return f
}

// step makes one call of the start. What it failed of is told by a fixed word and gRPC's code, never by the adapter's own.
func (l *launcher) step(ctx context.Context, i *instance, reason Reason, name string, call func(context.Context) error) *Failure {
	ctx, cancel := context.WithTimeout(ctx, l.timing.configure)
	defer cancel()
	err := call(ctx)
	if err == nil {
		return nil
	}
	if status.Code(err) == codes.Unavailable {
		select {
		case <-i.process.done():
			return &Failure{Reason: ReasonExited, Detail: "adapter ended during " + name}
		case <-time.After(pipeGrace):
		}
	}
	return &Failure{Reason: reason, Detail: name + ": " + status.Code(err).String(), Permanent: status.Code(err) == codes.Unimplemented}
}

// connection is the one thing that an adapter's executable serves: the bare connection.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugins")
}

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}
