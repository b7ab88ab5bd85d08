package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/api"
)

// slowDaemon goes on for so long after the caller of Plugins is gone.
type slowDaemon struct {
	fakeDaemon
	goesOn time.Duration
}

func (d *slowDaemon) Plugins(ctx context.Context) ([]api.Plugin, error) {
	<-ctx.Done()
	time.Sleep(d.goesOn)
	return nil, ctx.Err()
}

// piped listens in memory, where virtual time passes while somebody reads.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPiped() *piped { return &piped{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *piped) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *piped) Close() error {
	close(p.closed)
	return nil
}

func (p *piped) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (p *piped) dial() net.Conn {
	near, far := net.Pipe()
	p.conns <- far
	return near
}

func TestCloseAwaitsCallsThatItCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const goesOn = time.Minute
		listener := newPiped()
		server := api.NewServer(&slowDaemon{goesOn: goesOn}, nil, hclog.NewNullLogger())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		client := listener.dial()
		defer client.Close()
		if _, err := io.WriteString(client, "GET /v1/plugins HTTP/1.1\r\nHost: noria\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the call runs
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := server.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != goesOn {
			t.Errorf("closed after %v, want %v: when the call ended", took, goesOn)
		}
		if answer, err := io.ReadAll(client); err != nil || len(answer) > 0 {
			t.Errorf("the call was answered with %q, %v", answer, err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}
