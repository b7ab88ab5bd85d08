package proxy

import (
	"net"
	"runtime"
	"testing"
)

// offered is a listener to which a test hands connections.
type offered struct {
	net.Listener
	conns chan net.Conn
}

func (o *offered) Accept() (net.Conn, error) {
	conn, ok := <-o.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (o *offered) Close() error {
	close(o.conns)
	return nil
}

// offer hands a connection to the listener.
func (o *offered) offer(t *testing.T) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	o.conns <- server
}

// accepts accepts until the listener is closed.
func accepts(l net.Listener) <-chan net.Conn {
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	return accepted
}

// untilWaiting returns once that many listeners wait for room.
func (c *connectionLimit) untilWaiting(n int) {
	for {
		c.mu.Lock()
		waiting := c.waiting
		c.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

func TestOneLimitCountsTheConnectionsOfAllListeners(t *testing.T) {
	limit := newConnectionLimit()
	limit.set(2)
	one, two := &offered{conns: make(chan net.Conn, 2)}, &offered{conns: make(chan net.Conn, 2)}
	first, second := limit.listener(one), limit.listener(two)
	fromOne, fromTwo := accepts(first), accepts(second)
	one.offer(t)
	a := <-fromOne
	two.offer(t)
	<-fromTwo

	one.offer(t)
	two.offer(t)
	limit.untilWaiting(2)
	select {
	case <-fromOne:
		t.Error("a third connection was accepted")
	case <-fromTwo:
		t.Error("a third connection was accepted")
	default:
	}
	for range 2 { // a second Close makes no room
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-fromOne:
	case <-fromTwo:
	}
	limit.untilWaiting(1)

	limit.set(3)
	select {
	case <-fromOne:
	case <-fromTwo:
	}

	one.offer(t)
	limit.untilWaiting(1)
	for _, l := range []net.Listener{first, second} {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, accepted := range []<-chan net.Conn{fromOne, fromTwo} {
		if conn, more := <-accepted; more {
			t.Errorf("a closed listener accepted %v", conn)
		}
	}
}
