package plugin

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxPending bounds what waits for its turn; the oldest goes first.
const maxPending = 32

// paced hands over the newest item per key, one after the other and no oftener than the pace allows. It runs a goroutine
// only while something waits.
type paced[T any] struct {
	ctx         context.Context
	background  *background
	every       time.Duration
	urgentEvery time.Duration
	handle      func(context.Context, T)

	mu      sync.Mutex // guards below
	pending map[string]T
	order   []string // keys of pending, the next first
	urgent  bool
	running bool
	last    time.Time     // when the last one was handed over
	hurry   chan struct{} // holds one: something urgent came
}

func newPaced[T any](ctx context.Context, b *background, every, urgentEvery time.Duration, handle func(context.Context, T)) *paced[T] {
	return &paced[T]{ctx: ctx, background: b, every: every, urgentEvery: urgentEvery, handle: handle,
		pending: map[string]T{}, hurry: make(chan struct{}, 1)}
}

// put takes an item; merge makes one of it and of the item of the same key that waits still.
func (p *paced[T]) put(key string, item T, urgent bool, merge func(waiting, item T) T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting, ok := p.pending[key]; ok {
		item = merge(waiting, item)
	} else {
		if len(p.order) == maxPending {
			delete(p.pending, p.order[0])
			p.order = p.order[1:]
		}
		p.order = append(p.order, key)
	}
	p.pending[key] = item
	if urgent {
		p.urgent = true
		p.order = slices.Insert(slices.DeleteFunc(p.order, func(k string) bool { return k == key }), 0, key)
		select {
		case p.hurry <- struct{}{}:
		default:
		}
	}
	if !p.running {
		p.running = p.background.run(p.ctx, p.deliver)
	}
}

// deliver hands over what waits until nothing does.
func (p *paced[T]) deliver(ctx context.Context) {
	for {
		wait, more := p.due()
		if !more {
			return
		}
		if wait > 0 && !p.sleep(ctx, wait) {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.handle(ctx, p.next())
	}
}

// due says how long the next item has to wait; more is false, and the goroutine ends, when there is none.
func (p *paced[T]) due() (wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) == 0 {
		p.running = false
		return 0, false
	}
	pace := p.every
	if p.urgent {
		pace = p.urgentEvery
	}
	if p.last.IsZero() {
		return 0, true
	}
	return time.Until(p.last.Add(pace)), true
}

// sleep reports whether the time is over; false: something urgent came.
func (p *paced[T]) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.hurry:
		return false
	}
	return true
}

func (p *paced[T]) next() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := p.order[0]
	item := p.pending[key]
	p.order = p.order[1:]
	delete(p.pending, key)
	p.urgent = false
	p.last = time.Now()
	return item
}
