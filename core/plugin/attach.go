package plugin

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/noria-dev/noria/core/internal/owner"
	"github.com/noria-dev/noria/sdk/wire"
)

// attach connects to an adapter that somebody started with -debug. The host did not start it and does not stop it.
func (l *launcher) attach(ctx context.Context, spec Spec) (*instance, *Failure) {
	refused := func(detail string) *Failure {
		return &Failure{Reason: ReasonReattach, Detail: detail, Permanent: true}
	}
	if !spec.Dev {
		return nil, refused("attaching to a running adapter needs dev = true")
	}
	at, err := parseReattach(spec.Reattach)
	if err != nil {
		return nil, refused(err.Error())
	}
	p := newAttached(at.Pid)
	config := l.clientConfig()
	config.Reattach = &plugin.ReattachConfig{
		Protocol:        plugin.ProtocolGRPC,
		ProtocolVersion: at.ProtocolVersion,
		Addr:            &net.UnixAddr{Net: "unix", Name: at.Address},
		ReattachFunc:    func() (runner.AttachedRunner, error) { return p, nil },
		Test:            true, // go-plugin then leaves the process alone
	}
	line := newDialer()
	config.GRPCDialOptions = line.options()
	ctx, cancel := context.WithTimeout(ctx, l.timing.start)
	defer cancel()
	stop := context.AfterFunc(ctx, line.hangUp)
	conn, err := line.dial(plugin.NewClient(config))
	if inTime := stop(); err != nil || !inTime {
		line.hangUp()
		p.end(0)
		return nil, &Failure{Reason: ReasonReattach, Detail: "nobody answers at the socket of the running adapter"}
	}
	return &instance{spec: spec, digestState: DigestDev, startedAt: l.clock.Now(), calls: newGate(),
		process: p, conn: conn, hangUp: line.hangUp}, nil
}

// parseReattach reads the line that an executable prints with -debug, or the JSON in it. The socket must be ours alone:
// the connection to it has no TLS.
func parseReattach(line string) (wire.Reattach, error) {
	at, err := wire.ReadReattach(line)
	if err != nil {
		return at, errors.New("line of the running adapter cannot be read")
	}
	switch {
	case at.Protocol != string(plugin.ProtocolGRPC), at.ProtocolVersion != int(wire.Handshake.ProtocolVersion), at.Pid <= 1:
		return at, errors.New("running adapter speaks another protocol")
	case at.Network != "unix", !filepath.IsAbs(at.Address), len(at.Address) > maxSocketPath:
		return at, errors.New("running adapter listens on something else than a unix socket")
	}
	info, err := os.Lstat(at.Address)
	if err != nil || info.Mode().Type() != fs.ModeSocket || !owner.Ours(info) {
		return at, errors.New("socket of the running adapter is missing or belongs to somebody else")
	}
	dir, err := os.Lstat(filepath.Dir(at.Address))
	if err != nil || dir.Mode().Perm()&0o077 != 0 {
		return at, errors.New("socket of the running adapter is not in a private directory")
	}
	return at, nil
}

// attached is a process that is not ours.
type attached struct {
	number int
	gone   chan struct{}
	leave  chan struct{}
	once   sync.Once
}

// newAttached watches the process until it is gone or left.
func newAttached(pid int) *attached {
	a := &attached{number: pid, gone: make(chan struct{}), leave: make(chan struct{})}
	go func() {
		defer close(a.gone)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			select {
			case <-a.leave:
				return
			case <-ticker.C:
			}
		}
	}()
	return a
}

func (a *attached) pid() int { return a.number }

// end leaves it to itself.
func (a *attached) end(time.Duration) {
	a.once.Do(func() { close(a.leave) })
	<-a.gone
}

func (a *attached) done() <-chan struct{} { return a.gone }

func (a *attached) exit() string { return "" }

// Wait returns when the process is gone or left.
func (a *attached) Wait(context.Context) error {
	<-a.gone
	return nil
}

// Kill leaves it to itself.
func (a *attached) Kill(context.Context) error {
	a.end(0)
	return nil
}

// ID is the process id.
func (a *attached) ID() string { return strconv.Itoa(a.number) }

// PluginToHost changes nothing.
func (a *attached) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (a *attached) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
