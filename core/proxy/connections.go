package proxy

import (
	"net"
	"sync"
)

// connectionLimit bounds how many connections of clients are open at a time, over all listeners. It is safe for concurrent
// use.
type connectionLimit struct {
	mu         sync.Mutex // guards below
	most, open int
	// waiting listeners look again when changed is closed.
	waiting int
	changed chan struct{}
}

func newConnectionLimit() *connectionLimit { return &connectionLimit{changed: make(chan struct{})} }

// set changes the limit. What is open stays open.
func (c *connectionLimit) set(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most = most
	c.wake()
}

// enter waits for room; false: closed ended first.
func (c *connectionLimit) enter(closed <-chan struct{}) bool {
	for {
		changed, entered := c.tryEnter()
		if entered {
			return true
		}
		select {
		case <-changed:
			c.wait(-1)
		case <-closed:
			c.wait(-1)
			return false
		}
	}
}

// tryEnter gives what tells of a change when there is no room; its caller counts as waiting from then on.
func (c *connectionLimit) tryEnter() (changed <-chan struct{}, entered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open < c.most {
		c.open++
		return nil, true
	}
	c.waiting++
	return c.changed, false
}

func (c *connectionLimit) wait(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += delta
}

func (c *connectionLimit) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	c.wake()
}

// wake has those who wait look again. The caller holds the lock.
func (c *connectionLimit) wake() {
	if c.waiting > 0 {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// listener bounds what l accepts. It takes a connection before there is room for it: a listener that took its room first
// would keep it from the others while nobody connects.
func (c *connectionLimit) listener(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, limit: c, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	limit  *connectionLimit
	once   sync.Once
	closed chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.limit.enter(l.closed) {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return &limitedConn{Conn: conn, leave: sync.OnceFunc(l.limit.leave)}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
