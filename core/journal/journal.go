package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/internal/clock"
)

// Options says where a journal is and what it may use.
type Options struct {
	// Dir is the state directory. It is made when it is not there.
	Dir string
	// FS is used in place of Dir when it is not nil.
	FS FS
	// Logger takes what happens; nil for none.
	Logger hclog.Logger
	// Clock times what is measured; nil for the system's. The order of entries does not depend on it.
	Clock clock.Clock
	// OnCommit is told how long each write and sync of a group took. It must return at once; nil for nobody.
	OnCommit func(time.Duration)
	// Limits bounds the journal; fields that are zero have defaults.
	Limits Limits
}

// Limits bounds a journal in space and time.
type Limits struct {
	// RotateBytes and RotateEntries are the size of a journal at which a snapshot is wanted: 8 MiB and 16,384. A start replays
	// about as much, which costs more time than the same in a snapshot.
	RotateBytes   int64
	RotateEntries int
	// JournalBytes is the size at which a journal is given up when no snapshot could be written: 64 MiB. Files that are
	// much longer are not read.
	JournalBytes int64
	// PendingBytes bounds what is buffered for a slow disk: 32 MiB.
	PendingBytes int
	// Stall is how long Durable waits before the disk counts as failed: 10 s.
	Stall time.Duration
	// RetryMin and RetryMax are the first and the longest pause between attempts to get out of trouble: 100 ms and 30 s.
	RetryMin time.Duration
	RetryMax time.Duration
}

func (l Limits) withDefaults() Limits {
	fill := func(bytes *int64, value int64) {
		if *bytes == 0 {
			*bytes = value
		}
	}
	wait := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	fill(&l.RotateBytes, 8<<20)
	fill(&l.JournalBytes, max(64<<20, 4*l.RotateBytes))
	if l.RotateEntries == 0 {
		l.RotateEntries = 1 << 14
	}
	if l.PendingBytes == 0 {
		l.PendingBytes = 32 << 20
	}
	wait(&l.Stall, 10*time.Second)
	wait(&l.RetryMin, 100*time.Millisecond)
	wait(&l.RetryMax, max(30*time.Second, l.RetryMin))
	return l
}

// readable is the length of a journal that is read: what is over the bound by the last batch is still ours.
func (l Limits) readable() int64 { return l.JournalBytes + 2*int64(l.PendingBytes) }

// Journal is an open log. Its methods are safe for concurrent use.
type Journal struct {
	fs       FS
	logger   hclog.Logger
	clock    clock.Clock
	limits   Limits
	onCommit func(time.Duration)

	durable atomic.Uint64
	wanted  chan struct{} // holds a value when a snapshot is wanted
	wake    chan struct{} // holds a value when the writer has something to do
	done    chan struct{} // closed when the writer has ended
	notes   chan note     // for the log
	logged  chan struct{} // closed when the last of them is in the log

	// snapshotting holds a value while a generation is being made; what it guards is below.
	snapshotting chan struct{}
	logID        string
	generation   uint64 // the highest number in use
	latest       uint64 // generation of the newest durable snapshot, 0 for none
	previous     uint64 // of the one before

	mu         sync.Mutex // guards what follows; never held during a system call, nor while the log is written
	phase      phase
	recovering bool   // Recover was called
	sequence   uint64 // last one given out
	appended   uint64 // last one that Append gave out in this run
	pending    []byte // encoded lines that the writer has not taken
	lines      int    // in pending
	segment    *segment
	offered    *segment // takes over from segment once the writer has written what is pending
	drop       bool     // the writer must give up its segment
	settled    bool     // a durable snapshot and whole journals after it lead to segment
	synced     uint64   // last sequence known to be on stable storage in segment
	latches    uint64   // how many write errors there were
	degraded   *DegradedError
	changed    chan struct{} // closed and replaced when durable, degraded or phase change
	asked      bool          // a snapshot was asked for and not begun
	failures   int           // attempts that failed in a row
	retry      *time.Timer
	findings   findings
	recovered  Recovered // what Recover found
	stats      Stats     // the fields that are counted
}

type phase int

const (
	opened phase = iota
	running
	closing
	closed
)

// segment is a journal file that is being written. Only the writer touches file after it was offered.
type segment struct {
	file       File
	name       string
	generation uint64
	check      uint32
	bytes      int64         // guarded by Journal.mu
	entries    int           // guarded by Journal.mu
	taken      chan struct{} // closed when the writer has taken it over; the rest is valid from then on
	after      uint64        // the last sequence that is not in it
	appended   uint64        // Journal.appended at that moment
	latches    uint64        // Journal.latches at that moment
}

// Open locks the directory and looks whether this release can read it. A *LockedError, an *UnsafeError or a *NewerFormatError
// means that nothing was touched. A directory that cannot be written is opened all the same, and is degraded.
func Open(options Options) (*Journal, error) {
	j := &Journal{
		fs: options.FS, logger: options.Logger, clock: options.Clock, limits: options.Limits.withDefaults(),
		onCommit: options.OnCommit,
		wanted:   make(chan struct{}, 1), wake: make(chan struct{}, 1), done: make(chan struct{}),
		snapshotting: make(chan struct{}, 1), changed: make(chan struct{}),
		notes: make(chan note, maxNotes), logged: make(chan struct{}),
	}
	if j.logger == nil {
		j.logger = hclog.NewNullLogger()
	}
	if j.clock == nil {
		j.clock = clock.Wall{}
	}
	if j.onCommit == nil {
		j.onCommit = func(time.Duration) {}
	}
	if j.fs == nil {
		fs, err := openDirectory(options.Dir)
		if err != nil {
			return nil, err
		}
		j.fs = fs
	}
	if err := j.fs.Lock(); err != nil {
		if !writesFail(err) {
			return nil, errors.Join(err, j.fs.Close())
		}
		j.latchLocked(fmt.Errorf("lock: %w", err))
	}
	if err := checkFormats(j.fs); err != nil {
		return nil, errors.Join(err, j.fs.Close())
	}
	return j, nil
}

// Append adds entries, each one JSON object on one line, and returns the sequence of the last. It adds all or, with an error, none.
// It never waits for a disk, and it succeeds while the journal is degraded. The entries are not kept after the call.
func (j *Journal) Append(entries ...[]byte) (uint64, error) {
	for _, entry := range entries {
		if err := checkEntry(entry); err != nil {
			return 0, fmt.Errorf("append: %w", err)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.phase {
	case opened:
		return 0, ErrNotRecovered
	case closing, closed:
		return 0, ErrClosed
	}
	if uint64(len(entries)) > maxSequence-j.sequence {
		return 0, fmt.Errorf("append: %w", errUsedUp)
	}
	for _, entry := range entries {
		j.sequence++
		j.buffer(line{sequence: j.sequence, kind: entryLine, body: entry})
	}
	j.appended = j.sequence
	j.stats.Entries += uint64(len(entries))
	return j.sequence, nil
}

func checkEntry(entry []byte) error {
	if !isObject(entry) {
		return fmt.Errorf("%w: not one JSON object on one line", ErrEntryRefused)
	}
	if len(entry) > MaxEntryBytes {
		return fmt.Errorf("%w: %d bytes of at most %d", ErrEntryRefused, len(entry), MaxEntryBytes)
	}
	return nil
}

// buffer encodes the line for the writer. Without a file to write to it is in the owner's memory alone, and the snapshot that
// ends the degraded state will hold it. j.mu is held.
func (j *Journal) buffer(l line) {
	if j.segment == nil || j.drop {
		return
	}
	j.pending = appendLine(j.pending, j.segment.check, l)
	j.lines++
	if len(j.pending) > j.limits.PendingBytes {
		j.latchLocked(errBehind)
		return
	}
	signal(j.wake)
}

// Durable returns nil once every entry up to sequence is on stable storage. It returns at once with a *DegradedError while the
// journal is degraded, and otherwise when ctx ends.
func (j *Journal) Durable(ctx context.Context, sequence uint64) error {
	if sequence <= j.durable.Load() {
		return nil
	}
	stall := time.NewTimer(j.limits.Stall)
	defer stall.Stop()
	for {
		changed, err := j.settledOr(sequence)
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-stall.C:
			j.stalled()
		}
	}
}

// stalled latches unless somebody else who waited has.
func (j *Journal) stalled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.degraded == nil {
		j.latchLocked(errStalled)
	}
}

// settledOr returns the answer for the sequence, or the channel that is closed when it may have changed.
func (j *Journal) settledOr(sequence uint64) (<-chan struct{}, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case sequence <= j.durable.Load():
		return nil, nil
	case j.phase == opened:
		return nil, ErrNotRecovered
	case j.phase == closed:
		return nil, ErrClosed
	case j.degraded != nil:
		return nil, j.degraded
	}
	return j.changed, nil
}

// DurableSequence is the last sequence known to be on stable storage.
func (j *Journal) DurableSequence() uint64 { return j.durable.Load() }

// Degraded is nil, or a *DegradedError.
func (j *Journal) Degraded() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.degraded == nil {
		return nil
	}
	return j.degraded
}

// SnapshotWanted gets a value when a snapshot should be made with Snapshot.
func (j *Journal) SnapshotWanted() <-chan struct{} { return j.wanted }

// Findings returns what a person should know about the directory, the present state first.
func (j *Journal) Findings() []Finding {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.findings.all()
	if j.degraded == nil {
		return list
	}
	now := Finding{
		Level: Fault, Where: "state directory",
		What: fmt.Sprintf("since %s nothing is written durably: %v", j.degraded.Since.Format(time.RFC3339), j.degraded.Cause),
		Do:   "make the directory writable and free some space; the daemon goes on meanwhile and tries again by itself",
	}
	return append([]Finding{now}, list...)
}

// Stats returns what was counted so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Sequence, s.DurableSequence, s.Degraded = j.sequence, j.durable.Load(), j.degraded
	if j.segment != nil {
		s.Generation, s.JournalBytes = j.segment.generation, j.segment.bytes
	}
	return s
}

// closeWait is how long Close waits for a disk that does not answer.
const closeWait = 10 * time.Second

// Close writes what is buffered and an end marker, and gives up the lock. It waits at most ten seconds for the disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	before := j.phase
	if before == opened {
		j.phase = closed
	}
	if before == running {
		j.phase = closing
	}
	if j.retry != nil {
		j.retry.Stop()
	}
	j.mu.Unlock()
	switch before {
	case opened:
		return j.fs.Close()
	case closing, closed:
		return ErrClosed
	}
	signal(j.wake)
	patience := time.NewTimer(closeWait)
	defer patience.Stop()
	select {
	case <-j.done:
	case <-patience.C:
		return fmt.Errorf("close journal: %w", errStalled)
	}
	select {
	case j.snapshotting <- struct{}{}: // and never given back: no snapshot begins after this
	case <-patience.C:
		return fmt.Errorf("close journal: %w", errStalled)
	}
	err := errors.Join(j.Degraded(), j.fs.Close())
	select {
	case <-j.logged:
	case <-patience.C: // nobody reads the log
	}
	return err
}

// latchLocked records a write error and gives up the segment that is being written. j.mu is held.
func (j *Journal) latchLocked(cause error) {
	j.drop = true
	j.pending, j.lines = nil, 0
	j.degrade(cause)
}

// degrade ends all acknowledging until a snapshot is durable that is begun after this. j.mu is held.
func (j *Journal) degrade(cause error) {
	j.latches++
	j.settled = false
	if j.degraded == nil {
		j.degraded = &DegradedError{Since: j.clock.Now(), Cause: cause}
		j.note(hclog.Error, "journal degraded: nothing is acknowledged as durable, serving goes on", "cause", cause)
	}
	j.broadcast()
	j.want()
	signal(j.wake)
}

// broadcast wakes all who wait in Durable. j.mu is held.
func (j *Journal) broadcast() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// want asks for a snapshot, at once or after a pause that grows with the failures in a row. j.mu is held.
func (j *Journal) want() {
	if j.asked || j.phase == closing || j.phase == closed {
		return
	}
	j.asked = true
	if j.failures == 0 {
		signal(j.wanted)
		return
	}
	pause := j.limits.RetryMax
	if shift := j.failures - 1; shift < 16 {
		pause = min(pause, j.limits.RetryMin<<shift)
	}
	j.retry = time.AfterFunc(pause, func() { signal(j.wanted) })
}

// signal puts a value into a channel with room for one, unless it holds one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
