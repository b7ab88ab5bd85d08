package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/plugin"
	"github.com/noria-dev/noria/core/proxy"
	"github.com/noria-dev/noria/core/state"
)

// Options of a daemon.
type Options struct {
	// ConfigPath of noria.hcl; empty: the default.
	ConfigPath string
	// Dev runs the demonstration: simulated accounts, state that goes with the daemon. It reads no configuration.
	Dev     bool
	Version string
	// Stdout takes what a person should read, Stderr the log.
	Stdout, Stderr io.Writer
	// Reload asks for a reload (SIGHUP); may be nil.
	Reload <-chan os.Signal
	// Cut ends a drain when it ends (a second signal); may be nil.
	Cut context.Context
}

// Agent is a daemon. It is built once and runs once.
type Agent struct {
	options  Options
	clock    clock.Clock
	log      hclog.Logger
	redactor *events.Redactor
	started  time.Time

	store    *state.Store
	journal  *journal.Journal // nil when state is in memory only
	host     *plugin.Host
	adapters *adapters
	recorder *recorder
	// arrived tells that an adapter has become ready whose logins were not looked at yet.
	arrived chan struct{}
	keys    *keyring
	proxy   *proxy.Proxy
	probes  *probes

	listeners   []net.Listener
	certificate atomic.Pointer[tls.Certificate] // of the proxy, nil without TLS; a reload may replace it
	metrics     net.Listener                    // to begin with; nil without an address of their own
	nextMetrics chan net.Listener
	control     net.Listener
	draining    atomic.Bool

	// serving ends when the daemon has drained; what must not end with a caller has it as its context.
	serving context.Context

	reloading  turn // of those who change the configuration in force
	accounts   toldAccounts
	generation atomic.Uint64
	setup      atomic.Pointer[Setup]
}

// Run builds a daemon and runs it until ctx ends; then it drains and returns nil. Its error is of type config.Diagnostics or
// *RefusedStartError when a person has to put something right before a daemon can start.
func Run(ctx context.Context, options Options) (err error) {
	a := &Agent{
		options: options, clock: clock.Wall{}, redactor: events.NewRedactor(), probes: newProbes(),
		arrived: make(chan struct{}, 1), nextMetrics: make(chan net.Listener, 1),
		reloading: newTurn(),
	}
	a.started = a.clock.Now()
	if options.Dev {
		dir, err := newDevDirectory()
		if err != nil {
			return err
		}
		defer dir.remove()
		a.options.ConfigPath = dir.configPath()
	}
	if err := a.build(ctx); err != nil {
		return errors.Join(err, a.close())
	}
	return errors.Join(a.run(ctx), a.close())
}

// build makes all parts in the order in which they may refuse: configuration, state, addresses, adapters.
func (a *Agent) build(ctx context.Context) error {
	setup, warnings, err := a.configure(ctx)
	if err != nil {
		return err
	}
	cfg := setup.Config
	a.log = newLogger(cfg.Log, a.options.Stderr, a.redactor)
	for _, w := range warnings {
		a.log.Warn("configuration", "finding", w.String())
	}
	a.logUnusable(setup)
	a.prepareProcess()
	a.recorder = newRecorder(a.options.Version, a.present, a.log.Named("metrics"))
	if err := makeStateDirectory(setup.File); err != nil {
		return err
	}
	if err := a.openState(cfg); err != nil {
		return err
	}
	if a.keys, err = openKeyring(cfg.State.Dir); err != nil {
		return err
	}
	if err := a.listen(ctx, cfg); err != nil {
		return err
	}
	if err := a.openHost(cfg); err != nil {
		return err
	}
	if a.proxy, err = proxy.New(a.proxyOptions(cfg)); err != nil {
		return err
	}
	a.setup.Store(setup)
	a.generation.Store(1)
	return a.tellAccounts(setup)
}

// listen opens every address that is configured, and the control socket.
func (a *Agent) listen(ctx context.Context, cfg *config.Config) (err error) {
	if a.listeners, err = listenProxy(ctx, cfg.Listen, &a.certificate); err != nil {
		return err
	}
	if cfg.Metrics.Address != "" {
		if a.metrics, err = listenOne(ctx, "metrics.address", cfg.Metrics.Address); err != nil {
			return err
		}
	}
	a.control, err = listenControl(cfg.ControlSocket())
	return err
}

func (a *Agent) prepareProcess() {
	streams, err := raiseDescriptorLimit()
	if err != nil {
		a.log.Warn("descriptor limit", "error", err)
	}
	a.log.Info("descriptor limit", "streams", streams)
	if err := protectMemory(); err != nil {
		a.log.Warn("memory is not protected from core dumps", "error", err)
	}
}

func (a *Agent) openHost(cfg *config.Config) error {
	a.adapters = newAdapters(a.probes)
	host, err := plugin.New(plugin.Options{
		Catalog:     a.catalogOptions(&cfg.Host, cfg.State.Dir),
		RunDir:      cfg.RunDir(),
		HostVersion: a.options.Version,
		Refresh:     cfg.Telemetry.Refresh,
		Clock:       a.clock,
		Hooks:       a.hooks(),
	})
	if err != nil {
		return refuseStart(fmt.Errorf("open plugin host: %w", err),
			fmt.Sprintf("see that %s and plugins in the state directory are this user's alone (chmod 700); they are made anew when they are removed", cfg.RunDir()))
	}
	a.host, a.adapters.host = host, host
	return nil
}

func (a *Agent) proxyOptions(cfg *config.Config) proxy.Options {
	return proxy.Options{
		State: a.store, Adapters: a.adapters, Events: a.recorder, Clock: a.clock, Logger: a.log.Named("proxy"),
		Keys: a.keys, AuthNone: cfg.Listen.Auth == config.AuthNone,
		Hosts: cfg.Listen.Hosts, Limits: proxyLimits(cfg.Limits), Providers: a.providers, Ready: a.ready, Location: time.Local,
	}
}

func proxyLimits(l config.Limits) proxy.Limits {
	return proxy.Limits{
		Body: l.Body, ReplayMemory: l.ReplayMemory, Connections: l.Connections, HeaderTime: l.HeaderTime, HoldTime: l.HoldTime,
	}
}

// run serves until ctx ends, then drains.
func (a *Agent) run(ctx context.Context) error {
	cfg := a.setup.Load().Config
	// Serving outlives ctx: streams go on while the daemon drains.
	serving, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	group, running := errgroup.WithContext(serving)
	a.serving = running
	group.Go(func() error { return a.proxy.Serve(running, a.listeners...) })
	group.Go(func() error { return a.serveControl(running) })
	group.Go(func() error { return a.serveMetrics(running) })
	group.Go(func() error { a.tick(running); return nil })
	group.Go(func() error { a.store.Run(running); return nil })
	group.Go(func() error { a.watchLogins(running); return nil })
	group.Go(func() error { a.watchRuns(running); return nil })
	group.Go(func() error { a.watchUnusable(running); return nil })
	group.Go(func() error { a.reloadOnSignal(running); return nil })
	group.Go(func() error { a.startAdapters(running); return nil })
	if a.options.Dev {
		group.Go(func() error { return a.demonstrate(running) })
	}
	a.announce(cfg)
	select {
	case <-ctx.Done():
		a.drain(ctx)
	case <-running.Done():
	}
	cut()
	return group.Wait()
}

func (a *Agent) announce(cfg *config.Config) {
	a.recorder.add(events.Event{At: a.clock.Now(), Component: events.ComponentAgent, Operation: events.OperationStart})
	a.log.Info("serving", "address", a.addresses(), "config", cfg.Path, "state", cfg.State.Dir, "version", a.options.Version)
}

// drain stops accepting and lets streams go on up to the configured time.
func (a *Agent) drain(ctx context.Context) {
	a.draining.Store(true)
	limit := a.setup.Load().Config.Limits.Drain
	a.log.Info("draining", "limit", limit)
	a.recorder.add(events.Event{At: a.clock.Now(), Component: events.ComponentAgent, Operation: events.OperationDrain})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if a.options.Cut != nil {
		defer context.AfterFunc(a.options.Cut, cancel)()
	}
	if err := a.proxy.Shutdown(ctx); err != nil {
		a.log.Warn("streams were cut", "error", err)
	}
}

// close releases what build made, adapters last but for the journal. It may be called after a build that failed half way.
func (a *Agent) close() error {
	var errs []error
	closeAll(a.listeners)
	closeAll([]net.Listener{a.metrics, a.control})
	if a.host != nil {
		ctx, cancel := context.WithTimeout(context.Background(), adapterStopTime)
		defer cancel()
		errs = append(errs, a.host.Close(ctx))
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}

// adapterStopTime is what adapters get to finish after the last stream has ended.
const adapterStopTime = 5 * time.Second

func (a *Agent) addresses() []string {
	addresses := make([]string, 0, len(a.listeners))
	for _, l := range a.listeners {
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// baseURL of the proxy for clients on this machine: its address or, with TLS, the first of its names, for which there is
// a certificate.
func (a *Agent) baseURL() string {
	cfg := a.setup.Load().Config.Listen
	if cfg.TLSCert == "" {
		return "http://" + reachable(a.listeners[0].Addr())
	}
	address := reachable(a.listeners[0].Addr())
	if len(cfg.Hosts) > 0 {
		address = cfg.Hosts[0] + ":" + portOf(address)
	}
	return "https://" + address
}

// reachable is an address under which a listener can be reached from this machine, also when it listens on all of them.
func reachable(listening net.Addr) string {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return listening.String()
	}
	loopback := net.IPv6loopback
	if tcp.IP.To4() != nil {
		loopback = net.IPv4(127, 0, 0, 1)
	}
	return (&net.TCPAddr{IP: loopback, Port: tcp.Port}).String()
}

func (a *Agent) providers() []string {
	cfg := a.setup.Load().Config
	names := make([]string, 0, len(cfg.Providers))
	for _, p := range cfg.Providers {
		names = append(names, p.Name)
	}
	return names
}
