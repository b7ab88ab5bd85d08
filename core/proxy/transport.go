package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noria-dev/noria/sdk/wire"
)

// Bounds of connections to upstreams. There is no bound on how long an answer takes: that is the client's to decide.
const (
	dialTime         = 10 * time.Second
	handshakeTime    = 10 * time.Second
	idleUpstreamTime = 90 * time.Second
	// Informational answers count as well.
	maxResponseHeader = 48 << 10
	maxBases          = 64
)

// transports are the connections to upstreams, one pool per provider.
type transports struct {
	mu         sync.RWMutex // guards what follows
	byProvider map[string]*http.Transport
	bases      map[string]*url.URL
}

func newTransports() *transports {
	return &transports{byProvider: map[string]*http.Transport{}, bases: map[string]*url.URL{}}
}

// of gives the provider's pool. It speaks HTTP/1.1 over pooled connections: one HTTP/2 connection with a small window
// would serialise large uploads. It follows nothing, asks no environment for a proxy, and repeats nothing by itself,
// because a request's body cannot be got again.
func (t *transports) of(provider string) *http.Transport {
	t.mu.RLock()
	transport := t.byProvider[provider]
	t.mu.RUnlock()
	if transport != nil {
		return transport
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if transport = t.byProvider[provider]; transport == nil {
		transport = newTransport()
		t.byProvider[provider] = transport
	}
	return transport
}

func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		TLSHandshakeTimeout:    handshakeTime,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        idleUpstreamTime,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		ReadBufferSize:         16 << 10,
	}
}

// closeIdle closes all connections that no request uses.
func (t *transports) closeIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, transport := range t.byProvider {
		transport.CloseIdleConnections()
	}
}

// base parses a lease's base URL, once.
func (t *transports) base(raw string) (*url.URL, error) {
	t.mu.RLock()
	base := t.bases[raw]
	t.mu.RUnlock()
	if base != nil {
		return base, nil
	}
	base, err := wire.ParseUpstream(raw)
	if err != nil {
		return nil, fmt.Errorf("read upstream URL: it %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bases) >= maxBases {
		clear(t.bases)
	}
	t.bases[raw] = base
	return base, nil
}

// target is where a request with this escaped path and query goes.
func target(base *url.URL, path, query string) (*url.URL, error) {
	u := *base
	u.Path = strings.TrimSuffix(base.Path, "/") + path
	if strings.Contains(path, "%") {
		decoded, err := url.PathUnescape(path)
		if err != nil {
			return nil, fmt.Errorf("unescape path: %w", err)
		}
		u.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + path
		u.Path = strings.TrimSuffix(base.Path, "/") + decoded
	}
	u.RawQuery = query
	return &u, nil
}

// connection tells how far a request got on its connection. The transport's goroutines write it.
type connection struct{ reused, answered atomic.Bool }

// watch makes the transport tell.
func (c *connection) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { c.reused.Store(info.Reused) },
		GotFirstResponseByte: func() { c.answered.Store(true) },
	})
}

// stale reports whether the connection had been idle and broke without a byte of an answer: the upstream most likely
// closed it before it saw the request.
func (c *connection) stale() bool { return c.reused.Load() && !c.answered.Load() }
