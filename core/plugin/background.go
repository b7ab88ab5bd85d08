package plugin

import (
	"context"
	"sync"
)

// background owns goroutines: close ends and awaits them, and none begins after it.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex // guards closed, and the beginning of a task against the wait for all
	closed bool
}

// run begins a task, and reports whether it was not too late. ctx is, or comes from, the background's own.
func (b *background) run(ctx context.Context, task func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.tasks.Go(func() { task(ctx) })
	return true
}

func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.tasks.Wait()
}
