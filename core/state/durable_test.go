package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowLog is a log whose disk the test moves.
type slowLog struct {
	*MemoryLog
	durable  atomic.Uint64
	degraded atomic.Pointer[error]
	wanted   chan struct{}
	taken    chan struct{}
	arrived  chan struct{}
}

func newSlowLog() *slowLog {
	return &slowLog{MemoryLog: NewMemoryLog(true), wanted: make(chan struct{}), taken: make(chan struct{}), arrived: make(chan struct{}, 1)}
}

func (l *slowLog) DurableSequence() uint64 { return l.durable.Load() }

func (l *slowLog) Durable(ctx context.Context, sequence uint64) error {
	if err := l.Degraded(); err != nil {
		return err
	}
	l.arrived <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (l *slowLog) Degraded() error {
	if err := l.degraded.Load(); err != nil {
		return *err
	}
	return nil
}

func (l *slowLog) SnapshotWanted() <-chan struct{} { return l.wanted }

func (l *slowLog) Snapshot(write func(io.Writer) (uint64, error)) error {
	err := l.MemoryLog.Snapshot(write)
	l.taken <- struct{}{}
	return err
}

func TestAFirstByteWaitsOnlyForItsOwnEntry(t *testing.T) {
	log := newSlowLog()
	s, err := Open(log, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Store: s, t: t, now: start}
	f.must(s.ApplyAccounts([]AccountConfig{config("a")}, start))
	attempt := f.try("a", "claude/s", "m")
	sequence := f.accept(attempt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Durable(ctx, sequence) }()
	<-log.arrived
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	parallel := f.try("a", "claude/s", "m")
	if got := f.accept(parallel); got != sequence {
		t.Errorf("a parallel request of the session waits for %d, not %d", got, sequence)
	}
	log.durable.Store(sequence)
	f.end(attempt)
	f.end(parallel)
	f.pass(2 * time.Minute) // the row is written again, and nobody waits for that
	later := f.accept(f.try("a", "claude/s", "m"))
	if later != sequence {
		t.Fatalf("a bound session waits for %d, which is not durable", later)
	}
	if err := s.Durable(t.Context(), later); err != nil {
		t.Error(err)
	}
	if err := s.Durable(t.Context(), 0); err != nil {
		t.Errorf("nothing to wait for: %v", err)
	}
}

func TestADegradedLogHoldsNobodyUp(t *testing.T) {
	log := newSlowLog()
	s, err := Open(log, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	log.degraded.Store(&full)
	if err := s.Durable(t.Context(), 7); err != nil {
		t.Errorf("error = %v", err)
	}
	if !errors.Is(s.Degraded(), full) {
		t.Errorf("degraded = %v", s.Degraded())
	}
}

func TestRunAnswersTheLogsWishes(t *testing.T) {
	log := newSlowLog()
	s, err := Open(log, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.Run(ctx) })
	for range 3 {
		log.wanted <- struct{}{}
		<-log.taken
	}
	cancel()
	group.Wait()
}

func TestRequestsGoOnWhileASnapshotIsWritten(t *testing.T) {
	f := open(t, "a")
	for i := range 100 {
		f.serve("a", fmt.Sprint("claude/", i), "m")
	}
	release := make(chan struct{})
	blocking := &blockingLog{MemoryLog: f.log, started: make(chan struct{}), release: release}
	f.Store.log = blocking
	done := make(chan error)
	go func() { done <- f.Snapshot() }()
	<-blocking.started
	f.serve("a", "claude/during", "m")
	close(release)
	f.must(<-done)
	f.Store.log = f.log
	f.recover()
	f.lives("a", "claude/during", "m")
	f.lives("a", "claude/99", "m")
}

// blockingLog stops a snapshot at its first byte.
type blockingLog struct {
	*MemoryLog
	started chan struct{}
	release chan struct{}
}

func (l *blockingLog) Snapshot(write func(io.Writer) (uint64, error)) error {
	return l.MemoryLog.Snapshot(func(w io.Writer) (uint64, error) {
		return write(&stopped{Writer: w, log: l})
	})
}

type stopped struct {
	io.Writer
	log  *blockingLog
	once sync.Once
}

func (s *stopped) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.log.started); <-s.log.release })
	return s.Writer.Write(p)
}

func TestAFailedWriteOfASnapshotIsReported(t *testing.T) {
	f := open(t, "a")
	f.Store.log = failingLog{f.log}
	if err := f.Snapshot(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error = %v", err)
	}
}

type failingLog struct{ *MemoryLog }

func (l failingLog) Snapshot(write func(io.Writer) (uint64, error)) error {
	_, err := write(failing{})
	return err
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestATickWritesAtMostABatch(t *testing.T) {
	f := open(t, "a")
	for i := range 3 * flushBatch {
		f.serve("a", fmt.Sprint("claude/", i), "m")
	}
	f.now = f.now.Add(2 * time.Minute)
	for i := range 3 * flushBatch {
		f.serve("a", fmt.Sprint("claude/", i), "m")
	}
	var written []uint64
	for range 4 {
		before := f.Stats().Entries
		f.pass(time.Second)
		written = append(written, f.Stats().Entries-before)
	}
	var sum uint64
	for _, n := range written {
		sum += n
		if n > flushBatch {
			t.Errorf("a tick wrote %d rows", n)
		}
	}
	if sum < 3*flushBatch {
		t.Errorf("rows written: %v", written)
	}
}

func TestARowThatIsRefusedTakesNoOtherWithIt(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/t", "m")
	f.pass(2 * time.Minute)
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/t", "m")
	used := f.now
	f.Store.log = &refusing{Log: f.log, word: `"claude/s"`}
	f.now = f.now.Add(2 * time.Minute)
	if err := f.Tick(f.now); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), SessionHash("claude/s")) || strings.Contains(err.Error(), "claude/s") {
		t.Errorf("error = %v", err)
	}
	for session, written := range map[string]bool{"claude/s": false, "claude/t": true} {
		row, err := first[*bindingRow](f.db.Txn(false), tableBindings, bindingID{session, "m"})
		f.must(err)
		if row.LastUsed.Equal(used) != written {
			t.Errorf("%s: last used at %v", session, row.LastUsed)
		}
	}
	f.pass(time.Hour)
	if len(f.live) != 0 || len(f.touched) != 0 {
		t.Errorf("%d sessions and %d rows are still in memory", len(f.live), len(f.touched))
	}
	f.serve("a", "claude/s", "m")
	f.Store.log = f.log
	f.pass(2 * time.Minute)
	if row, _ := first[*bindingRow](f.db.Txn(false), tableBindings, bindingID{"claude/s", "m"}); !row.LastUsed.After(used) {
		t.Error("a row that was refused once is never written again")
	}
}

func TestTheHistoryOfASessionIsBounded(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	for i := range 20 {
		f.now = f.now.Add(time.Minute)
		if _, err := f.MoveSession("claude/s", id([]string{"b", "a"}[i%2]), f.now); err != nil {
			t.Fatal(err)
		}
	}
	view, _ := f.Session("claude/s")
	moves := view.Bindings[0].Moves
	if len(moves) != maxMoves || !moves[maxMoves-1].At.Equal(f.now) || moves[0].At.After(moves[1].At) {
		t.Errorf("moves = %+v", moves)
	}
	f.must(f.Close())
	f.recover()
	f.lives("a", "claude/s", "m")
}
