package proxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// A request's header may have this many bytes, to which net/http adds 4 KiB.
const maxHeaderBytes = 60 << 10

// newServer returns a server without a write timeout: an answer may be silent for minutes. Every single write has a
// deadline instead.
func (p *Proxy) newServer() *http.Server {
	limits := p.limits.Load()
	return &http.Server{
		Handler:                      p.running.Handler(p),
		ReadHeaderTimeout:            limits.HeaderTime,
		IdleTimeout:                  limits.IdleTime,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		// What net/http logs holds text from clients.
		ErrorLog: log.New(serverErrors{p}, "", 0),
	}
}

// serverErrors counts the lines of net/http's error log without telling what they say.
type serverErrors struct{ proxy *Proxy }

func (e serverErrors) Write(line []byte) (int, error) {
	e.proxy.log.Debug("connection failed", "bytes", len(line))
	return len(line), nil
}

// Serve serves the listeners until Shutdown, which makes it return nil, or until ctx ends, which cuts every connection and
// awaits its request. Listeners that speak TLS must not offer HTTP/2. They are closed when it returns. It may be called
// once.
func (p *Proxy) Serve(ctx context.Context, listeners ...net.Listener) error {
	defer p.transports.closeIdle()
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		p.cut()
	})
	defer func() {
		if !stop() {
			<-cut
		}
	}()
	var group errgroup.Group
	for _, l := range listeners {
		group.Go(func() error {
			err := p.server.Serve(strictListener{p.connections.listener(l)})
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			_ = p.server.Close()
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		})
	}
	return group.Wait()
}

// Shutdown stops accepting and returns when the requests that run have ended. When ctx ends first, it cuts them, awaits
// that they end, and returns ctx's error.
func (p *Proxy) Shutdown(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if err != nil {
		p.cut()
	}
	return err
}

// cut closes every connection and awaits the requests of them.
func (p *Proxy) cut() {
	_ = p.server.Close()
	p.running.Close()
}
