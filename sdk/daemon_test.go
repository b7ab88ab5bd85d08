package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// patience bounds what the tests wait for; none of them depends on it when all is well.
const patience = 20 * time.Second

// daemon is a go-plugin client as a daemon has one, with an adapter process.
type daemon struct {
	conn     *grpc.ClientConn
	command  *exec.Cmd
	plugin   pluginv1.PluginClient
	provider providerv1.ProviderClient
	stderr   *lockedBuffer
	client   *plugin.Client
}

type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// connPlugin is the client's side of the one plugin.
type connPlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (connPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (connPlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// startAdapter starts the test binary as an adapter under a real go-plugin client with automatic mutual TLS.
func startAdapter(t testing.TB, name string, environment ...string) *daemon {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(environment, adapterVariable+"="+name, "GORACE=atexit_sleep_ms=0", "PATH="+os.Getenv("PATH"), "TMPDIR="+shortDir(t))
	return attach(t, &plugin.ClientConfig{Cmd: command, AutoMTLS: true, SkipHostEnv: true})
}

func attach(t testing.TB, config *plugin.ClientConfig) *daemon {
	t.Helper()
	d := &daemon{command: config.Cmd, stderr: &lockedBuffer{}}
	config.HandshakeConfig = wire.Handshake
	config.Plugins = plugin.PluginSet{wire.PluginName: connPlugin{}}
	config.AllowedProtocols = []plugin.Protocol{plugin.ProtocolGRPC}
	config.Logger = hclog.NewNullLogger()
	config.Stderr = d.stderr
	config.StartTimeout = patience
	d.client = plugin.NewClient(config)
	t.Cleanup(d.client.Kill)
	protocol, err := d.client.Client()
	if err != nil {
		t.Fatalf("start adapter: %v; it said: %s", err, d.stderr)
	}
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		t.Fatalf("dispense: %v", err)
	}
	d.conn = raw.(*grpc.ClientConn)
	d.plugin = pluginv1.NewPluginClient(d.conn)
	d.provider = providerv1.NewProviderClient(d.conn)
	return d
}

// configure applies one provider block and named account blocks.
func (d *daemon) configure(t testing.TB, generation uint64, provider string, accounts ...*pluginv1.Account) []*pluginv1.Diagnostic {
	t.Helper()
	resp, err := d.plugin.Configure(t.Context(), &pluginv1.ConfigureRequest{Generation: generation,
		Config: &pluginv1.Config{ProviderJson: []byte(provider), Accounts: accounts}})
	if err != nil {
		t.Fatalf("configure: %v", err)
	}
	return resp.GetDiagnostics()
}

func account(name, block string) *pluginv1.Account {
	return &pluginv1.Account{Name: name, Enabled: true, ConfigJson: []byte(block)}
}

const goodProvider = `{"endpoint": "http://127.0.0.1:1"}`

// ended waits for the adapter process and gives its exit code.
func ended(t testing.TB, wait func() error) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		if err != nil {
			t.Fatalf("wait for adapter: %v", err)
		}
		return 0
	case <-time.After(patience):
		t.Fatal("adapter did not end")
		return -1
	}
}

// bare starts the test binary as an adapter without a go-plugin client, with the given environment and arguments.
func bare(t testing.TB, name string, args, environment []string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(environment, adapterVariable+"="+name, "GORACE=atexit_sleep_ms=0", "PATH="+os.Getenv("PATH"), "TMPDIR="+shortDir(t))
	return command
}

// served is the environment in which an adapter serves a daemon.
func served(t testing.TB) []string {
	t.Helper()
	return []string{
		wire.Handshake.MagicCookieKey + "=" + wire.Handshake.MagicCookieValue,
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", wire.Handshake.ProtocolVersion),
		plugin.EnvUnixSocketDir + "=" + shortDir(t),
		"PLUGIN_CLIENT_CERT=" + certificatePEM(t),
	}
}

// shortDir is a directory for sockets, whose paths must not be as long as the name of a test.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sdk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func began(t testing.TB) (path, variable string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "began")
	return path, "SDK_TEST_BEGAN=" + path
}

func await(t testing.TB, path string) {
	t.Helper()
	select {
	case <-fileExists(path):
	case <-time.After(patience):
		t.Fatalf("call did not begin")
	}
}
