package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// memoryListener takes connections through memory instead of sockets, so that in a synctest bubble time passes as soon
// as client, proxy and upstream all wait.
type memoryListener struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func listenInMemory(port int) *memoryListener {
	return &memoryListener{
		addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, conns: make(chan net.Conn), closed: make(chan struct{}),
	}
}

func (l *memoryListener) Addr() net.Addr { return l.addr }

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// dial connects to the listener, whatever the address.
func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- addressedConn{far, l.addr}:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// addressedConn has the address of its listener: the proxy compares it with the Host header.
type addressedConn struct {
	net.Conn
	addr net.Addr
}

func (c addressedConn) LocalAddr() net.Addr { return c.addr }

// newBubbleRig is a rig without sockets, for a synctest bubble. answer is the upstream of every account, as with
// newRawUpstream.
func newBubbleRig(t testing.TB, answer func(conn net.Conn, n int), adjust ...func(*rig, *Options)) (*rig, *rawUpstream) {
	t.Helper()
	r := newFakes(t)
	r.build(adjust)
	listener, upstream := listenInMemory(8080), listenInMemory(8081)
	for _, provider := range []string{"claude", "codex"} {
		transport := newTransport()
		transport.DialContext = upstream.dial
		r.proxy.transports.byProvider[provider] = transport
	}
	r.dial = listener.dial
	r.client = &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: r.dial}}
	r.serve(listener)
	return r, startRawUpstream(r, upstream, answer)
}
