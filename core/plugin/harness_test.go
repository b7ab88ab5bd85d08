package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// hostCommand makes this test binary a daemon that is going to be killed.
const hostCommand = "plugin-host"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fakeCommand {
		runFake(os.Args[2:])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == hostCommand {
		runHost(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// quick is the timing of tests with real processes. Only deadlines that good adapters do not come near are short, so that
// a busy machine fails no test; what must time out is given less by the test itself.
func quick() timing {
	t := designTiming()
	t.start = 30 * time.Second
	t.configure = 30 * time.Second
	t.drain = 2 * time.Second
	t.termGrace = 300 * time.Millisecond
	t.killGrace = 30 * time.Second
	t.healthEvery = time.Hour
	return t
}

// bench is a host with its directories and what it logged.
type bench struct {
	t    testing.TB
	host *Host
	dir  string
	log  *syncBuffer

	mu     sync.Mutex // guards states
	states []Info
	change chan struct{} // holds one: states grew
}

type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newBench(t testing.TB, timing timing, hooks Hooks) *bench {
	t.Helper()
	// The path of the test's own directory is too long for sockets.
	dir, err := os.MkdirTemp("", "nh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bench{t: t, dir: dir, log: &syncBuffer{}, change: make(chan struct{}, 1)}
	hooks.OnState = func(info Info) {
		b.mu.Lock()
		b.states = append(b.states, info)
		b.mu.Unlock()
		select {
		case b.change <- struct{}{}:
		default:
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "plugins"), 0o700))
	b.host, err = newHost(Options{
		Catalog: CatalogOptions{
			Logger:    hclog.New(&hclog.LoggerOptions{Output: b.log, Level: hclog.Debug}),
			PluginDir: filepath.Join(dir, "plugins"),
			CacheDir:  filepath.Join(dir, "cache"),
		},
		RunDir: filepath.Join(dir, "run"),
		Hooks:  hooks,
	}, timing)
	must(t, err)
	t.Cleanup(b.close)
	return b
}

func (b *bench) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.host.Close(ctx); err != nil && !errors.Is(err, ErrClosed) {
		b.t.Errorf("close host: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// script writes an executable into the plugin directory.
func (b *bench) script(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, "plugins", name)
	must(b.t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// spec of a pinned plugin with one enabled and one disabled account.
func (b *bench) spec(path string, config fakeConfig) Spec {
	b.t.Helper()
	digest, err := b.host.Pin(path)
	must(b.t, err)
	raw, err := json.Marshal(config)
	must(b.t, err)
	return Spec{Name: "fake", Provider: "fake", Path: path, SHA256: digest, Config: &pluginv1.Config{
		ProviderJson: raw,
		Accounts:     []*pluginv1.Account{{Name: "work", Enabled: true}, {Name: "off"}},
	}}
}

// fake is the spec of a fake adapter started with the words.
func (b *bench) fake(config fakeConfig, words ...string) Spec {
	b.t.Helper()
	return b.spec(b.script("noria-provider-fake", fakeScript(b.t, words...)), config)
}

func fakeScript(t testing.TB, words ...string) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", self, fakeCommand, strings.Join(words, " "))
}

// apply applies one spec and returns its error.
func (b *bench) apply(specs ...Spec) error {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, r := range b.host.Apply(ctx, specs) {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

func (b *bench) ready(specs ...Spec) {
	b.t.Helper()
	if err := b.apply(specs...); err != nil {
		b.t.Fatalf("apply: %v\n%s", err, b.log)
	}
}

func (b *bench) client() *Client {
	b.t.Helper()
	c, err := b.host.Client("fake")
	must(b.t, err)
	return c
}

func (b *bench) info() Info {
	b.t.Helper()
	list := b.host.List()
	if len(list) != 1 {
		b.t.Fatalf("list has %d adapters, want 1", len(list))
	}
	return list[0]
}

// awaitState returns the first state after the seen ones that accept takes.
func (b *bench) awaitState(what string, accept func(Info) bool) Info {
	b.t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		b.mu.Lock()
		i := slices.IndexFunc(b.states, accept)
		if i >= 0 {
			found := b.states[i]
			b.states = b.states[i+1:]
			b.mu.Unlock()
			return found
		}
		b.mu.Unlock()
		select {
		case <-b.change:
		case <-deadline:
			b.t.Fatalf("adapter never became %s\n%s", what, b.log)
		}
	}
}

func in(state State) func(Info) bool { return func(i Info) bool { return i.State == state } }
