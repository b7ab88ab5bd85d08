package plugin

import (
	"context"
	"sync"
)

// gate counts running calls, so that an adapter is stopped after the last of them.
type gate struct {
	mu      sync.Mutex // guards below
	running int
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs

	// closing ends when the gate is closed.
	closing context.Context
	cancel  context.CancelFunc
}

func newGate() *gate {
	g := &gate{idle: make(chan struct{})}
	g.closing, g.cancel = context.WithCancel(context.Background())
	return g
}

// enter reports whether a call may begin; then leave must follow.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if g.closed && g.running == 0 {
		close(g.idle)
	}
}

// close lets nobody in any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	g.cancel()
	if g.running == 0 {
		close(g.idle)
	}
}

// wait returns when the gate is closed and nothing runs, or ctx has ended.
func (g *gate) wait(ctx context.Context) {
	select {
	case <-g.idle:
	case <-ctx.Done():
	}
}
