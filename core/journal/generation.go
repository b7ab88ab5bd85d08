package journal

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
)

const (
	snapshotPrefix  = "snapshot-"
	journalPrefix   = "journal-"
	temporarySuffix = ".tmp"
	damagedSuffix   = ".damaged"
)

func snapshotName(generation uint64) string {
	return snapshotPrefix + strconv.FormatUint(generation, 10)
}

func journalName(generation uint64) string {
	return journalPrefix + strconv.FormatUint(generation, 10)
}

// Snapshot starts a new generation: what is appended from now on goes to a new file. Then it calls write once, holding no lock;
// what it writes, one JSON document, must hold every entry whose Append had returned by then, and the sequence it returns is that of
// the last entry it surely holds. When all is on stable storage the generations below the one before are removed, and the journal is
// no longer degraded. After an error a snapshot is wanted again in a while.
func (j *Journal) Snapshot(write func(w io.Writer) (sequence uint64, err error)) error {
	select {
	case j.snapshotting <- struct{}{}:
	case <-j.done:
		return ErrClosed
	}
	defer func() { <-j.snapshotting }()
	start := j.clock.Now()
	current, err := j.beginSnapshot()
	if err == nil {
		err = j.writeGeneration(current, write)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.snapshotFailed(err)
		return fmt.Errorf("write snapshot: %w", err)
	}
	j.failures = 0
	j.stats.Snapshots++
	j.stats.SnapshotDuration = max(j.clock.Now().Sub(start), 0)
	return nil
}

// beginSnapshot takes note that the wish is being answered, and returns the segment that has no snapshot yet, if there is one
// that is sound: after a failed attempt another file is not needed.
func (j *Journal) beginSnapshot() (*segment, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch j.phase {
	case opened:
		return nil, ErrNotRecovered
	case closing, closed:
		return nil, ErrClosed
	}
	j.asked = false
	if j.retry != nil {
		j.retry.Stop()
	}
	s := j.segment
	if s == nil || j.drop || s.generation == j.latest || j.grown(s) {
		return nil, nil
	}
	s.after, s.appended, s.latches = j.sequence, j.appended, j.latches
	return s, nil
}

// grown tells whether a journal is at its size. j.mu is held.
func (j *Journal) grown(s *segment) bool {
	return s.bytes >= j.limits.RotateBytes || s.entries >= j.limits.RotateEntries
}

func (j *Journal) writeGeneration(s *segment, write func(io.Writer) (uint64, error)) error {
	if s == nil {
		var err error
		if s, err = j.startSegment(); err != nil {
			return err
		}
	}
	h := header{format: Format, log: j.logID, generation: s.generation}
	if err := j.writeSnapshot(&h, s, write); err != nil {
		return err
	}
	j.previous, j.latest = j.latest, s.generation
	if err := j.settle(s, h); err != nil {
		return err
	}
	j.removeOld()
	return nil
}

// startSegment makes the next journal file and waits until the writer uses it.
func (j *Journal) startSegment() (*segment, error) {
	if err := j.fs.Lock(); err != nil {
		return nil, err
	}
	s, err := j.createSegment()
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	j.offered = s
	j.mu.Unlock()
	signal(j.wake)
	select {
	case <-s.taken:
		return s, nil
	case <-j.done:
		s.file.Close()
		return nil, ErrClosed
	}
}

// createSegment makes the next journal file and puts its name on stable storage. Its first line is written, and gets there with
// the first entry.
func (j *Journal) createSegment() (*segment, error) {
	if j.generation >= maxSequence {
		return nil, fmt.Errorf("create journal: %w", errUsedUp)
	}
	j.generation++
	s := &segment{
		name: journalName(j.generation), generation: j.generation,
		check: lineCheck(j.logID, j.generation), taken: make(chan struct{}),
	}
	var err error
	if s.file, err = j.fs.Create(s.name); err != nil {
		return nil, err
	}
	first := appendBegin(nil, begin{Format: Format, Log: j.logID, Generation: j.generation})
	s.bytes = int64(len(first))
	if _, err = s.file.Write(first); err == nil {
		err = j.fs.Sync()
	}
	if err != nil {
		s.file.Close()
		return nil, errors.Join(err, j.fs.Remove(s.name))
	}
	return s, nil
}

// writeSnapshot makes the snapshot of the header's generation and fills the rest of the header.
func (j *Journal) writeSnapshot(h *header, s *segment, write func(io.Writer) (uint64, error)) error {
	name := snapshotName(h.generation)
	temporary := name + temporarySuffix
	file, err := createAnew(j.fs, temporary) // an attempt that failed may have left one
	if err != nil {
		return err
	}
	err = fillSnapshot(file, h, s, write)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = j.fs.Rename(temporary, name)
	}
	if err != nil {
		_ = j.fs.Remove(temporary) // the error that matters is known; a file that stays is removed at the next start
		return err
	}
	return j.fs.Sync()
}

func fillSnapshot(file File, h *header, s *segment, write func(io.Writer) (uint64, error)) error {
	if _, err := file.Write(make([]byte, headerBytes)); err != nil {
		return err
	}
	body := &bodyWriter{file: file}
	buffered := bufio.NewWriterSize(body, 256<<10)
	sequence, err := write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return err
	}
	if sequence < s.appended {
		return fmt.Errorf("it holds entries up to %d only, of %d", sequence, s.appended)
	}
	// The owner need not know of sequences before those of this run that were lost or that it refused: they are gone for good.
	h.sequence, h.length, h.bodyCRC = max(sequence, s.after), body.length, body.crc
	if _, err := file.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	return file.Sync()
}

// syncEvery is how much of a snapshot may be waiting for the disk. A sync of the journal would have to wait for all of it.
const syncEvery = 1 << 20

// bodyWriter writes the body of a snapshot and checksums it.
type bodyWriter struct {
	file     File
	length   uint64
	crc      uint32
	unsynced int
}

func (w *bodyWriter) Write(p []byte) (int, error) {
	if w.length+uint64(len(p)) > MaxSnapshotBytes {
		return 0, fmt.Errorf("it is longer than %d bytes", MaxSnapshotBytes)
	}
	n, err := w.file.Write(p)
	w.length += uint64(n)
	w.crc = crc32.Update(w.crc, castagnoli, p[:n])
	w.unsynced += n
	if err == nil && w.unsynced >= syncEvery {
		w.unsynced = 0
		err = w.file.Sync()
	}
	return n, err
}

// settle lets entries be acknowledged again, now that a durable snapshot leads to the segment. A write error since the snapshot was
// begun leaves things as they are.
func (j *Journal) settle(s *segment, h header) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.SnapshotBytes = int64(h.length) + headerBytes
	if j.latches != s.latches || j.drop {
		return errSuperseded
	}
	if !j.settled {
		j.settled = true
		j.durable.Store(max(j.durable.Load(), h.sequence, j.synced))
		if j.degraded != nil {
			j.note(hclog.Info, "journal durable again", "after", j.clock.Now().Sub(j.degraded.Since), "generation", s.generation)
			j.degraded = nil
		}
		j.broadcast()
	}
	return nil
}

// snapshotFailed asks for another attempt. j.mu is held.
func (j *Journal) snapshotFailed(err error) {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrNotRecovered) {
		return
	}
	j.failures++
	j.stats.SnapshotFailures++
	j.note(hclog.Warn, "snapshot failed", "cause", err, "in a row", j.failures)
	if !j.settled && j.degraded == nil {
		j.degrade(fmt.Errorf("first snapshot: %w", err))
	}
	j.asked = false
	j.want()
}

// removeOld removes what neither of the newest two snapshots needs. Until there are two, nothing is removed. That a file stays is
// no harm: the next time is another attempt.
func (j *Journal) removeOld() {
	if j.previous == 0 {
		return
	}
	names, err := j.fs.List()
	if err != nil {
		return
	}
	for _, name := range names {
		_, generation, ok := parseName(name)
		if ok && generation < j.previous {
			_ = j.fs.Remove(name)
		}
	}
	removeAside(j.fs, names)
}

// parseName splits the name of a snapshot or journal.
func parseName(name string) (prefix string, generation uint64, ok bool) {
	for _, prefix := range []string{snapshotPrefix, journalPrefix} {
		if number, found := strings.CutPrefix(name, prefix); found {
			generation, ok := parseNumber([]byte(number))
			return prefix, generation, ok && generation > 0
		}
	}
	return "", 0, false
}
