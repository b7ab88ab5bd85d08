package state

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
)

// MemoryLog keeps entries in memory: for simulation, for tests, and for a daemon without a state directory. What it has
// taken counts as durable. It can be recovered from again, as a file can.
type MemoryLog struct {
	mu       sync.Mutex // guards all below
	base     uint64     // sequence of the snapshot
	snapshot []byte
	entries  [][]byte // after base
	keep     bool
	next     uint64
	wanted   chan struct{}
}

// memorySnapshotAfter is how many kept entries make a snapshot worth while.
const memorySnapshotAfter = 10_000

// NewMemoryLog returns an empty log. One that keeps can be recovered from; the other counts sequences only.
func NewMemoryLog(keep bool) *MemoryLog {
	return &MemoryLog{keep: keep, next: 1, wanted: make(chan struct{}, 1)}
}

// Recover implements Log.
func (l *MemoryLog) Recover(restore func(uint64, []byte) error, apply func(uint64, []byte) error) error {
	l.mu.Lock()
	snapshot, base, entries := l.snapshot, l.base, l.entries[:len(l.entries):len(l.entries)]
	l.mu.Unlock()
	if snapshot != nil {
		if err := restore(base, snapshot); err != nil {
			return fmt.Errorf("restore snapshot: %w", err)
		}
	}
	for i, entry := range entries {
		if err := apply(base+uint64(i)+1, entry); err != nil {
			return fmt.Errorf("apply entry %d: %w", base+uint64(i)+1, err)
		}
	}
	return nil
}

// Append implements Log.
func (l *MemoryLog) Append(entries ...[]byte) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next += uint64(len(entries))
	for _, entry := range entries {
		l.retain(entry)
	}
	return l.next - 1, nil
}

// retain keeps an entry in a log that can be recovered from. l.mu is held.
func (l *MemoryLog) retain(entry []byte) {
	if !l.keep {
		return
	}
	l.entries = append(l.entries, bytes.Clone(entry))
	if len(l.entries)%memorySnapshotAfter != 0 {
		return
	}
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// Durable implements Log.
func (l *MemoryLog) Durable(context.Context, uint64) error { return nil }

// DurableSequence implements Log.
func (l *MemoryLog) DurableSequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// Snapshot implements Log.
func (l *MemoryLog) Snapshot(write func(io.Writer) (uint64, error)) error {
	var body bytes.Buffer
	sequence, err := write(&body)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keep {
		l.entries = append([][]byte(nil), l.entries[sequence-l.base:]...)
		l.snapshot, l.base = body.Bytes(), sequence
	}
	return nil
}

// SnapshotWanted implements Log.
func (l *MemoryLog) SnapshotWanted() <-chan struct{} { return l.wanted }

// Degraded implements Log.
func (l *MemoryLog) Degraded() error { return nil }

// Close implements Log.
func (l *MemoryLog) Close() error { return nil }
