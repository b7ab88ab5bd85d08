package events

import (
	"context"
	"sync"
)

// List keeps the newest events, a fixed number of them. It is safe for concurrent use; no call waits for a reader.
type List struct {
	mu sync.Mutex // guards all below
	// ring holds event number n at (n-1) % len(ring).
	ring []Event
	last uint64
	// grown is closed and replaced when an event arrives while somebody waits for one.
	grown   chan struct{}
	waiting int
}

// NewList returns a list of the newest size events; a size below 1 counts as 1.
func NewList(size int) *List {
	return &List{ring: make([]Event, max(size, 1)), grown: make(chan struct{})}
}

// Record adds the sanitized event, gives it the next sequence and returns it as it was kept.
func (l *List) Record(event Event) Event {
	event = event.Sanitized()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	event.Sequence = l.last
	l.ring[(l.last-1)%uint64(len(l.ring))] = event
	if l.waiting > 0 {
		close(l.grown)
		l.grown = make(chan struct{})
		l.waiting = 0
	}
	return event
}

// Recent returns up to limit of the newest events that match, oldest first. A nil match takes all.
func (l *List) Recent(limit int, match func(Event) bool) []Event {
	l.mu.Lock()
	held := make([]Event, 0, min(l.last, uint64(len(l.ring))))
	for n := l.oldest(); n <= l.last; n++ {
		held = append(held, l.at(n))
	}
	l.mu.Unlock()

	// match is the caller's and runs outside the lock.
	kept := held[:0]
	for _, event := range held {
		if match == nil || match(event) {
			kept = append(kept, event)
		}
	}
	return kept[max(0, len(kept)-max(limit, 0)):]
}

// Follow returns a reader of all events after the given sequence. It holds no events of its own, so any number of slow
// readers cost the list nothing: one that falls further behind than the list is long is told how many it missed.
func (l *List) Follow(after uint64) *Follower { return &Follower{list: l, seen: after} }

// Follower reads a list event by event. It is for one goroutine.
type Follower struct {
	list *List
	seen uint64
}

// Next waits for the next event. missed counts the events between the last one and this that the list no longer held.
// The error is ctx's.
func (f *Follower) Next(ctx context.Context) (event Event, missed uint64, err error) {
	for {
		event, missed, grown := f.take()
		if grown == nil {
			return event, missed, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return Event{}, 0, ctx.Err()
		}
	}
}

// take gives the next event, or the channel that is closed when there is one.
func (f *Follower) take() (event Event, missed uint64, grown <-chan struct{}) {
	l := f.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.seen > l.last { // a sequence of an earlier process
		f.seen = 0
	}
	if f.seen == l.last {
		l.waiting++
		return Event{}, 0, l.grown
	}
	next := max(f.seen+1, l.oldest())
	missed = next - f.seen - 1
	f.seen = next
	return l.at(next), missed, nil
}

// oldest is the sequence of the oldest event held; callers hold mu.
func (l *List) oldest() uint64 {
	if size := uint64(len(l.ring)); l.last > size {
		return l.last - size + 1
	}
	return 1
}

// at is event number n, which is held; callers hold mu.
func (l *List) at(n uint64) Event { return l.ring[(n-1)%uint64(len(l.ring))] }
