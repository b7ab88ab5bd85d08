package sdk

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/noria-dev/noria/sdk/wire"
)

// Version of the SDK, by semantic versioning.
const Version = "0.1.0"

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// drainTime is how long calls may go on after a SIGTERM, stopTime how long they may take to notice that they were
// cancelled.
const (
	drainTime = 10 * time.Second
	stopTime  = time.Second
)

// Serve makes an executable of an adapter; it is all that main needs to call, and does not return. newAdapter is called
// once. What the executable does depends on its arguments:
//
//	(none)    serves a Noria daemon, which starts it; by hand it says so and ends
//	describe  prints the adapter's description as JSON
//	version   prints name and version
//	-debug    serves without a daemon as parent, for a debugger, and prints the line that attaches a daemon to it
//
// Standard output belongs to the handshake: whatever else the program prints there goes to standard error. SIGINT is
// ignored, SIGTERM lets running calls finish, and the death of the daemon ends the process.
func Serve(newAdapter func() Adapter) {
	os.Exit(run(newAdapter, os.Args[1:]))
}

func run(newAdapter func() Adapter, args []string) int {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch {
	case len(args) > 1:
		return usage(os.Stderr, exitUsage)
	case command == "":
		if os.Getenv(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue {
			fmt.Fprintln(os.Stderr, "This is a provider adapter of Noria. The daemon starts it: name it in a plugin block of noria.hcl and run \"noria serve\".")
			return usage(os.Stderr, exitUsage)
		}
		return serve(newAdapter, false)
	case command == "-debug" || command == "--debug":
		return serve(newAdapter, true)
	case command == "describe":
		return printDescription(os.Stdout, newAdapter)
	case command == "version":
		d := newAdapter().Describe()
		fmt.Printf("%s %s (sdk %s)\n", d.Name, d.Version, Version)
		return exitDone
	case command == "help" || command == "-h" || command == "-help" || command == "--help":
		return usage(os.Stdout, exitDone)
	}
	return usage(os.Stderr, exitUsage)
}

func usage(w io.Writer, code int) int {
	fmt.Fprintln(w, "Other uses: describe, version, -debug.")
	return code
}

// serve runs the adapter until the daemon shuts it down, a SIGTERM was obeyed or the daemon is gone.
func serve(newAdapter func() Adapter, debug bool) int {
	logger := hclog.New(&hclog.LoggerOptions{Name: "sdk", Level: hclog.Warn, Output: os.Stderr, JSONFormat: true})
	std, err := claimStdio()
	if err != nil {
		return failed(logger, "claim standard output", err)
	}
	if !debug {
		if err := protectMemory(); err != nil {
			logger.Warn("protect memory", "error", err)
		}
	}
	host, err := newAdapterServer(newAdapter(), debug, logger)
	if err != nil {
		return failed(logger, "describe adapter", err)
	}
	end := watchParent(std.parentPipe, os.Getenv(wire.EnvParent))
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	// Notified and not read, an interrupt has no effect. Ignoring it would be inherited by the adapter's own children.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)

	listening, err := listen(host, logger, debug)
	if err != nil {
		return failed(logger, "serve", err)
	}
	defer listening.stop()
	if _, err := io.WriteString(std.handshake, listening.greeting); err != nil {
		return failed(logger, "write handshake", err)
	}
	select {
	case <-listening.closed:
	case <-end:
	case <-term:
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		host.drain(ctx)
		cancel()
		host.leave(stopTime)
	}
	listening.stop()
	host.calls.wait(stopTime)
	return exitDone
}

func failed(logger hclog.Logger, what string, err error) int {
	logger.Error(what, "error", err)
	return exitFailed
}

// listening is a running gRPC server.
type listening struct {
	// greeting is the handshake line, or with -debug the reattach line.
	greeting string
	// closed ends with the server, whoever stopped it.
	closed <-chan struct{}
	cancel context.CancelFunc
	// dir is a directory of our own for the socket; empty when the daemon gave one.
	dir string
}

func (l listening) stop() {
	l.cancel()
	select {
	case <-l.closed:
	case <-time.After(stopTime):
	}
	l.removeDir()
}

func (l listening) removeDir() {
	if l.dir != "" {
		_ = os.RemoveAll(l.dir)
	}
}

// listen starts go-plugin's server in the mode that leaves standard output, signals and exit to its caller. The other
// mode prints the handshake through os.Stdout, where an adapter's own output can damage it, and afterwards sends
// os.Stderr into a stream that stalls the writer when nobody reads it.
func listen(host *adapterServer, logger hclog.Logger, debug bool) (listening, error) {
	config := &plugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
		Plugins:         plugin.PluginSet{wire.PluginName: host},
		GRPCServer:      host.newGRPCServer,
		Logger:          logger,
	}
	l := listening{}
	var certificate string
	var err error
	if debug {
		l.dir, err = debugDirectory()
	} else {
		config.TLSProvider, certificate, err = mutualTLS(os.Getenv("PLUGIN_CLIENT_CERT"))
	}
	if err != nil {
		return l, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	closed := make(chan struct{})
	l.cancel, l.closed = cancel, closed
	reattach := make(chan *plugin.ReattachConfig, 1)
	config.Test = &plugin.ServeTestConfig{Context: ctx, ReattachConfigCh: reattach, CloseCh: closed}
	go plugin.Serve(config)
	select {
	case at := <-reattach:
		l.greeting = handshakeLine(at, certificate)
		if debug {
			l.greeting, err = reattachLine(at, host.descriptor.Name)
		}
		return l, err
	case <-closed:
		cancel()
		l.removeDir()
		return l, fmt.Errorf("open socket in %q", os.Getenv(plugin.EnvUnixSocketDir))
	}
}

// debugDirectory is private to this user, as the one that a daemon gives: without a daemon there is no TLS.
func debugDirectory() (string, error) {
	dir, err := os.MkdirTemp("", "noria-debug-")
	if err != nil {
		return "", err
	}
	return dir, os.Setenv(plugin.EnvUnixSocketDir, dir)
}

func handshakeLine(at *plugin.ReattachConfig, certificate string) string {
	return fmt.Sprintf("%d|%d|%s|%s|%s|%s\n", plugin.CoreProtocolVersion, at.ProtocolVersion,
		at.Addr.Network(), at.Addr.String(), at.Protocol, certificate)
}

// reattachLine sets a variable in a shell; a daemon that is started with it attaches.
func reattachLine(at *plugin.ReattachConfig, name string) (string, error) {
	return wire.Reattach{
		Name:            name,
		Protocol:        string(at.Protocol),
		ProtocolVersion: at.ProtocolVersion,
		Pid:             at.Pid,
		Network:         at.Addr.Network(),
		Address:         at.Addr.String(),
	}.Line()
}

// newGRPCServer sets the limits of both directions on purpose: gRPC's own differ by side.
func (s *adapterServer) newGRPCServer(options []grpc.ServerOption) *grpc.Server {
	s.grpc = grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(wire.MaxMessage),
		grpc.MaxSendMsgSize(wire.MaxMessage),
		grpc.ChainUnaryInterceptor(s.calls.unary),
		grpc.ChainStreamInterceptor(s.calls.stream),
	)...)
	return s.grpc
}

// leave stops the server so that answers which were given arrive: go-plugin's own way cuts the connection.
func (s *adapterServer) leave(atMost time.Duration) {
	close(s.calls.leaving)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	select {
	case <-stopped:
	case <-time.After(atMost):
	}
}
