package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/sdk/wire"
)

const (
	defaultRefresh = 45 * time.Second
	// maxRunDir leaves room for what go-plugin adds to make the path of a socket.
	maxRunDir = maxSocketPath - len("/plugin-dir0123456789/plugin0123456789")
)

// Host runs adapters. It is safe for concurrent use.
type Host struct {
	*Catalog
	options  Options
	timing   timing
	launcher *launcher
	spawner  *spawner
	wakeups  background
	retiring sync.WaitGroup
	// validations are those under way.
	validations *gate
	refresh     atomic.Int64 // the interval of quota probes, in nanoseconds
	// ending ends when what is still being drained is to be killed.
	ending context.Context
	kill   context.CancelFunc

	// clients by provider; the map is replaced, never changed, so that requests need no lock.
	clients atomic.Pointer[map[string]*Client]

	mu       sync.Mutex // guards below
	adapters map[string]*adapter
	closed   bool
}

// adapter is one plugin under supervision and its client.
type adapter struct {
	supervisor *supervisor
	client     *Client
}

// New returns a host that runs nothing yet. It marks the descriptors that this process inherited, and sweeps the run
// directory.
func New(options Options) (*Host, error) { return newHost(options, designTiming()) }

func newHost(options Options, t timing) (*Host, error) {
	if options.Clock == nil {
		options.Clock = clock.Wall{}
	}
	if options.Refresh == 0 {
		options.Refresh = defaultRefresh
	}
	catalog, err := NewCatalog(options.Catalog)
	if err != nil {
		return nil, err
	}
	if err := keepDescriptors(); err != nil {
		return nil, err
	}
	runDir, err := sweepRunDir(options.RunDir)
	if err != nil {
		return nil, err
	}
	catalog.cache.sweep(time.Now())
	h := &Host{Catalog: catalog, options: options, timing: t, spawner: newSpawner(), adapters: map[string]*adapter{},
		validations: newGate()}
	h.clients.Store(&map[string]*Client{})
	h.SetRefresh(options.Refresh)
	h.launcher = &launcher{
		catalog:     catalog,
		spawner:     h.spawner,
		runDir:      runDir,
		hostVersion: options.HostVersion,
		clock:       options.Clock,
		timing:      t,
		check:       &answerCheck{redactor: catalog.redactor},
	}
	h.ending, h.kill = context.WithCancel(context.Background())
	h.wakeups.ctx, h.wakeups.cancel = context.WithCancel(context.Background())
	h.wakeups.run(h.wakeups.ctx, func(ctx context.Context) { watchWakeups(ctx, t, moments(), h.probeAll) })
	return h, nil
}

// sweepRunDir removes what a daemon that was killed has left. The directory is ours alone, by its mode and by contract.
func sweepRunDir(dir string) (string, error) {
	resolved, err := privateDir(dir)
	if err != nil {
		return "", fmt.Errorf("open directory of sockets: %w", err)
	}
	if len(resolved) > maxRunDir {
		return "", fmt.Errorf("open directory of sockets: path %q is longer than %d bytes", resolved, maxRunDir)
	}
	entries, err := os.ReadDir(resolved)
	if err != nil {
		return "", fmt.Errorf("sweep directory of sockets: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), socketDirPrefix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(resolved, entry.Name())); err != nil {
			return "", fmt.Errorf("sweep directory of sockets: %w", err)
		}
	}
	return resolved, nil
}

// socketDirPrefix is how go-plugin names the directories of sockets.
const socketDirPrefix = "plugin-dir"

// Apply makes the running adapters those of specs: new ones are started, changed ones are started beside the old one and
// swapped when ready (when the new one fails, the old one stays, with its old configuration), others are drained and
// stopped. It returns when each has come so far or ctx ended, with one result per spec and per adapter that was stopped.
// What failed is supervised further.
func (h *Host) Apply(ctx context.Context, specs []Spec) []Result {
	digests := h.digestsNow(specs)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return failAll(specs, ErrClosed)
	}
	results, waits := h.reconcile(specs, digests)
	h.mu.Unlock()
	for i, wait := range waits {
		if wait == nil {
			continue
		}
		select {
		case results[i].Err = <-wait:
		case <-ctx.Done():
			results[i].Err = ctx.Err()
		}
	}
	return results
}

func failAll(specs []Spec, err error) []Result {
	var results []Result
	for _, spec := range specs {
		results = append(results, Result{Name: spec.Name, Err: err})
	}
	return results
}

// reconcile changes every wish. It waits for nothing; the caller holds the lock.
func (h *Host) reconcile(specs []Spec, digests map[string]string) (results []Result, waits []<-chan error) {
	add := func(name string, wait <-chan error, err error) {
		results = append(results, Result{Name: name, Err: err})
		waits = append(waits, wait)
	}
	keep := map[string]bool{}
	for _, spec := range specs {
		if err := h.acceptable(spec, keep); err != nil {
			add(spec.Name, nil, err)
			continue
		}
		keep[spec.Name] = true
		if a := h.adapters[spec.Name]; a != nil && a.client.provider == spec.Provider {
			add(spec.Name, a.supervisor.apply(spec, digests[spec.Name]), nil)
			continue
		}
		if old := h.adapters[spec.Name]; old != nil {
			h.retire(spec.Name, old)
		}
		a, settled := h.newAdapter(spec)
		h.adapters[spec.Name] = a
		add(spec.Name, settled, nil)
	}
	for name, a := range h.adapters {
		if !keep[name] {
			add(name, h.retire(name, a), nil)
		}
	}
	h.showClients()
	return results, waits
}

// showClients makes the clients findable. The caller holds the lock.
func (h *Host) showClients() {
	clients := map[string]*Client{}
	for _, a := range h.adapters {
		clients[a.client.provider] = a.client
	}
	h.clients.Store(&clients)
}

// acceptable refuses what the host cannot tell apart.
func (h *Host) acceptable(spec Spec, taken map[string]bool) error {
	switch {
	case !wire.IsName(spec.Name), !wire.IsName(spec.Provider):
		return fmt.Errorf("apply plugin %q for provider %q: not a name", printable.Line(spec.Name, maxIDBytes), printable.Line(spec.Provider, maxIDBytes))
	case taken[spec.Name]:
		return fmt.Errorf("apply plugin %s: named twice", spec.Name)
	}
	for name := range taken {
		if a := h.adapters[name]; a != nil && a.client.provider == spec.Provider {
			return fmt.Errorf("apply plugin %s: provider %s is served by plugin %s already", spec.Name, spec.Provider, name)
		}
	}
	return nil
}

// digestsNow are the digests of executables that may be replaced without a change of their specs, where one runs.
func (h *Host) digestsNow(specs []Spec) map[string]string {
	digests := map[string]string{}
	for _, spec := range specs {
		h.mu.Lock()
		known := h.adapters[spec.Name] != nil
		h.mu.Unlock()
		if known && !spec.Disabled && spec.Reattach == "" && (spec.Bundled || spec.Dev) {
			digests[spec.Name] = h.Verify(spec).SHA256
		}
	}
	return digests
}

func (h *Host) newAdapter(spec Spec) (*adapter, <-chan error) {
	client := &Client{
		provider: spec.Provider,
		clock:    h.options.Clock,
		timing:   h.timing,
		refresh:  h.interval,
		check:    h.launcher.check,
		hooks:    h.options.Hooks,
		chance:   rand.Float64,
	}
	client.start()
	out := newOutput(h.logger.Named("plugin."+spec.Name), h.redactor)
	s := &supervisor{
		clock:    h.options.Clock,
		timing:   h.timing,
		publish:  client.adopt,
		withdraw: client.withdraw,
		onState:  h.options.Hooks.OnState,
		chance:   rand.Float64,
		output:   out,
		ending:   h.ending,
	}
	s.launch = func(ctx context.Context, spec Spec, progress func(State)) (*instance, *Failure) {
		return h.launcher.launch(ctx, spec, out, progress, client.takeProfile)
	}
	return &adapter{supervisor: s, client: client}, s.begin(spec)
}

// retire asks for the end of an adapter and returns what is told when it has come. The caller holds the lock.
func (h *Host) retire(name string, a *adapter) <-chan error {
	delete(h.adapters, name)
	a.supervisor.end()
	ended := make(chan error, 1)
	h.retiring.Go(func() {
		<-a.supervisor.done
		a.client.close()
		ended <- nil
	})
	return ended
}

// Validate asks the plugin about a configuration; nothing is applied. A plugin that is not running is started for it. Errors:
// ErrClosed, also when the host closes meanwhile, *Failure, those of a Client.
func (h *Host) Validate(ctx context.Context, spec Spec) ([]Diagnostic, error) {
	if !h.validations.enter() {
		return nil, ErrClosed
	}
	defer h.validations.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.validations.closing, cancel)()
	found, err := h.validate(ctx, spec)
	if h.validations.closing.Err() != nil {
		return nil, ErrClosed
	}
	return found, err
}

func (h *Host) validate(ctx context.Context, spec Spec) ([]Diagnostic, error) {
	h.mu.Lock()
	running := h.adapters[spec.Name]
	h.mu.Unlock()
	if running != nil && running.runs(h.Verify(spec).SHA256) {
		found, err := running.client.validate(ctx, spec.Config)
		if !errors.Is(err, ErrAway) {
			return found, err
		}
	}
	return h.validateApart(ctx, spec)
}

// runs reports whether the executable of that digest is the one that runs now.
func (a *adapter) runs(digest string) bool {
	a.supervisor.mu.Lock()
	defer a.supervisor.mu.Unlock()
	return digest != "" && a.supervisor.running == digest
}

// validateApart starts a process that is asked and ended again.
func (h *Host) validateApart(ctx context.Context, spec Spec) ([]Diagnostic, error) {
	out := newOutput(h.logger.Named("plugin."+spec.Name), h.redactor)
	i, f := h.launcher.connect(ctx, spec, out)
	if f != nil {
		f.Stderr = out.lastLines()
		return nil, f
	}
	defer i.retire(ctx, h.timing)
	if f := h.launcher.greet(ctx, i); f != nil {
		return nil, f
	}
	c := &Client{provider: spec.Provider, timing: h.timing, check: h.launcher.check}
	return c.validateOn(ctx, i, spec.Config)
}

// Client returns the client of a provider, without a lock; the same one while the provider is among the specs. Errors:
// ErrUnknown.
func (h *Host) Client(provider string) (*Client, error) {
	if c := (*h.clients.Load())[provider]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w provider %s", ErrUnknown, printable.Line(provider, maxIDBytes))
}

// List returns all adapters, by name, as they were when last started; it looks at no file.
func (h *Host) List() []Info {
	var list []Info
	for _, a := range h.all() {
		info := a.supervisor.snapshot()
		info.Source = h.Source(a.supervisor.wished().spec)
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (h *Host) all() []*adapter {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*adapter
	for _, a := range h.adapters {
		all = append(all, a)
	}
	return all
}

// Restart starts a new process, also of an adapter that failed for good, and returns when it is ready or failed. Errors:
// ErrUnknown, *Failure.
func (h *Host) Restart(ctx context.Context, name string) error {
	h.mu.Lock()
	a := h.adapters[name]
	h.mu.Unlock()
	if a == nil {
		return fmt.Errorf("%w plugin %s", ErrUnknown, printable.Line(name, maxIDBytes))
	}
	select {
	case err := <-a.supervisor.restart():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RefreshQuota probes the account at once and returns when that probe ended.
func (h *Host) RefreshQuota(ctx context.Context, account quota.AccountID) error {
	c, err := h.Client(account.Provider)
	if err != nil {
		return err
	}
	return c.RefreshQuota(ctx, account.Name)
}

// SetRefresh sets the interval of quota probes: for every account from its next probe on.
func (h *Host) SetRefresh(interval time.Duration) { h.refresh.Store(int64(interval)) }

func (h *Host) interval() time.Duration { return time.Duration(h.refresh.Load()) }

// Close drains and stops everything, and returns when no process and no goroutine is left. When ctx ends first the
// processes are killed.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return ErrClosed
	}
	h.closed = true
	all := h.adapters
	h.adapters = map[string]*adapter{}
	h.showClients()
	h.mu.Unlock()
	h.wakeups.close()
	h.validations.close()
	defer h.kill()
	stop := context.AfterFunc(ctx, h.kill)
	defer stop()
	for _, a := range all {
		a.supervisor.end()
	}
	for _, a := range all {
		<-a.supervisor.done
		a.client.close()
	}
	h.retiring.Wait()
	<-h.validations.idle
	h.spawner.close()
	return nil
}

// probeAll asks for a probe of every account of every adapter: whatever was known is as old as the machine slept.
func (h *Host) probeAll() {
	for _, a := range h.all() {
		a.client.probeAll()
	}
}
