package journal

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Recovered says what a start found.
type Recovered struct {
	// Generation and SnapshotSequence are of the snapshot that was restored, 0 for none.
	Generation       uint64
	SnapshotSequence uint64
	// Sequence is the last one that was seen.
	Sequence uint64
	// Entries were applied, Duplicates left out because they had been, Refused by apply, Missing never found.
	Entries, Duplicates, Refused int
	Missing                      uint64
	// BadLines failed their checks; TornBytes are the end of a write that did not happen.
	BadLines, TornBytes int
	// BadSnapshots could not be used.
	BadSnapshots int
	// Clean says that the run before was closed, and all of it is here.
	Clean    bool
	Duration time.Duration
}

// Recover calls restore with the body of the newest good snapshot, if there is one, and then apply for every good entry after it, in
// ascending sequence. When restore fails the snapshot before is tried; an entry that apply refuses is treated as a bad line. An
// error that is errors.ErrUnsupported, from either, ends recovery with a *NewerFormatError and nothing is touched. Otherwise the
// journal accepts entries from now on, and Findings says what was found. It is called once.
func (j *Journal) Recover(restore func(sequence uint64, body []byte) error, apply func(sequence uint64, entry []byte) error) error {
	start := j.clock.Now()
	if err := j.beginRecovery(); err != nil {
		return err
	}
	r := &recovery{fs: j.fs, limit: j.limits.readable(), restore: restore, apply: apply}
	if err := r.run(); err != nil {
		return fmt.Errorf("recover journal: %w", err)
	}
	r.keepAside(j.Degraded())
	j.logID, j.generation, j.latest = r.logID, r.newest(), r.snapshot.generation
	if j.logID == "" {
		j.logID = newLogID()
	}
	r.Duration = j.clock.Now().Sub(start)
	for _, f := range r.findings.all() {
		j.logger.Log(f.Level.logged(), "recovery", "finding", f.What, "where", f.Where, "do", f.Do)
	}
	j.logger.Info("recovered", "snapshot", r.Generation, "entries", r.Entries, "sequence", r.Sequence, "clean", r.Clean, "took", r.Duration)
	return j.start(r)
}

// beginRecovery lets one recovery through.
func (j *Journal) beginRecovery() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.phase != opened || j.recovering {
		return errors.New("recover journal: it was recovered or closed before")
	}
	j.recovering = true
	return nil
}

// start lets the journal accept entries, in a new file: an old one may end in the middle of a line, or in pages that are not on the
// disk.
func (j *Journal) start(r *recovery) error {
	j.mu.Lock()
	if j.phase != opened {
		j.mu.Unlock()
		return ErrClosed
	}
	locked := j.degraded == nil
	j.sequence, j.recovered, j.findings = r.Sequence, r.Recovered, r.findings
	j.phase = running
	j.mu.Unlock()

	var s *segment
	err := j.Degraded()
	if locked {
		s, err = j.createSegment()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if locked && err != nil {
		j.degrade(err)
	}
	j.segment, j.drop = s, false
	j.want()
	go j.write()
	go j.logNotes()
	return nil
}

func newLogID() string {
	var id [logIDDigits / 2]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// recovery reads a directory back. It changes nothing before keepAside.
type recovery struct {
	Recovered
	fs      FS
	limit   int64
	restore func(uint64, []byte) error
	apply   func(uint64, []byte) error

	listing
	logID    string
	snapshot header // zero for none
	journals []contents
	aside    []aside
	findings findings
}

func (r *recovery) run() error {
	var err error
	if r.listing, err = list(r.fs); err != nil {
		return err
	}
	if err := r.restoreNewest(); err != nil {
		return err
	}
	r.readJournals()
	if err := r.replay(); err != nil {
		return err
	}
	r.judgeEnd()
	return nil
}

// newest is the highest generation that a file of ours has. What was put aside is out of the way.
func (r *recovery) newest() uint64 {
	newest := r.snapshot.generation
	for _, c := range r.journals {
		newest = max(newest, c.generation)
	}
	return newest
}

// restoreNewest restores the newest snapshot that is good, if there is one.
func (r *recovery) restoreNewest() error {
	for _, generation := range slices.Backward(r.snapshots) {
		h, body, err := readSnapshot(r.fs, generation)
		if h.generation == generation && r.logID == "" {
			r.logID = h.log
		}
		if err == nil {
			err = r.restore(h.sequence, body)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			return &NewerFormatError{File: snapshotName(generation), Cause: err}
		}
		if err == nil {
			r.snapshot, r.logID = h, h.log
			r.Generation, r.SnapshotSequence, r.Sequence = generation, h.sequence, h.sequence
			return nil
		}
		r.badSnapshot(snapshotName(generation), err)
	}
	if r.BadSnapshots > 0 {
		r.findings.add(Warning, "state directory", "the daemon started from the journals alone; sessions that are missing are placed anew", "no snapshot could be used")
	}
	return nil
}

func (r *recovery) badSnapshot(name string, err error) {
	r.BadSnapshots++
	r.aside = append(r.aside, aside{name: name, whole: true})
	r.findings.add(Warning, name, remedy(err, name), "the snapshot cannot be used, the one before serves: %s", brief(err))
}

// remedy says what to do about a file that cannot be used.
func remedy(err error, name string) string {
	var unsafe *UnsafeError
	if errors.As(err, &unsafe) {
		return unsafe.Remedy + "; it is kept as " + name + damagedSuffix
	}
	return "nothing to do: it is kept as " + name + damagedSuffix + ". If this happens again, check the disk"
}

// findLogID takes the log id from the first journal that says it, when no snapshot did. A journal whose own first line is damaged
// can be read with it.
func (r *recovery) findLogID() {
	for _, generation := range r.listing.journals {
		if r.logID != "" {
			return
		}
		text, _, err := r.fs.Read(journalName(generation), formatBytes)
		first, _, _ := bytes.Cut(text, []byte{'\n'})
		if b, ok := parseBegin(first); err == nil && ok && b.Generation == generation && isLogID(b.Log) {
			r.logID = b.Log
		}
	}
}

// readJournals reads the journals of the snapshot's generation and later.
func (r *recovery) readJournals() {
	r.findLogID()
	for _, generation := range r.listing.journals {
		if generation < r.snapshot.generation {
			continue
		}
		c, err := readJournal(r.fs, generation, r.logID, r.limit)
		if err != nil {
			r.aside = append(r.aside, aside{name: c.name, whole: true})
			r.findings.add(Warning, c.name, remedy(err, c.name), "the journal cannot be used: %s", brief(err))
			continue
		}
		for i := range c.entries {
			c.entries[i].journal = len(r.journals)
		}
		r.journals = append(r.journals, c)
		r.Sequence = max(r.Sequence, c.last)
		r.report(c)
	}
}

func (r *recovery) report(c contents) {
	r.BadLines += len(c.bad)
	if len(c.bad) > 0 {
		r.findings.add(Warning, c.name, "nothing to do: they are kept in "+c.name+damagedSuffix+". If this happens again, check the disk",
			"%s skipped, the first at byte %d", counted(len(c.bad), "damaged line was", "damaged lines were"), c.bad[0].offset)
	}
	if c.merged {
		r.findings.add(Warning, c.name, "make sure that nothing else writes in the state directory",
			"lines run into each other, as if two daemons had written")
	}
	if c.torn != nil {
		r.TornBytes += len(c.torn.bytes)
		r.findings.add(Note, c.name, "nothing to do: it was never acknowledged", "the last write was cut after %d bytes", len(c.torn.bytes))
	}
}

// replay applies the entries after the snapshot by sequence, each once.
func (r *recovery) replay() error {
	var entries []entry
	for _, c := range r.journals {
		entries = append(entries, c.entries...)
	}
	bySequence := func(a, b entry) int { return cmp.Compare(a.sequence, b.sequence) }
	if !slices.IsSortedFunc(entries, bySequence) {
		slices.SortStableFunc(entries, bySequence)
	}
	var conflicts int
	last := r.SnapshotSequence
	gap := gap{}
	for i, e := range entries {
		if e.sequence <= last {
			if e.sequence > r.SnapshotSequence {
				r.Duplicates++
				if !bytes.Equal(e.body, entries[i-1].body) {
					conflicts++
				}
			}
			continue
		}
		gap.add(last+1, e.sequence)
		last = e.sequence
		if err := r.applyOne(e); err != nil {
			return err
		}
	}
	gap.add(last+1, r.Sequence+1)
	r.Missing = gap.missing
	r.reportReplay(gap, conflicts)
	return nil
}

func (r *recovery) applyOne(e entry) error {
	err := r.apply(e.sequence, e.body)
	if errors.Is(err, errors.ErrUnsupported) {
		return &NewerFormatError{File: r.journals[e.journal].name, Cause: err}
	}
	if err == nil {
		r.Entries++
		return nil
	}
	r.Refused++
	c := &r.journals[e.journal]
	c.bad = append(c.bad, stretch{e.offset, e.raw})
	r.findings.add(Warning, c.name, "nothing to do: it is kept in "+c.name+damagedSuffix, "the entry %d was refused: %s", e.sequence, brief(err))
	return nil
}

func (r *recovery) reportReplay(gap gap, conflicts int) {
	if gap.missing > 0 {
		r.findings.add(Warning, "state directory", "nothing to do: the sessions concerned are placed anew",
			"%s missing, the first is %d", counted(int(gap.missing), "entry is", "entries are"), gap.first)
	}
	if conflicts > 0 {
		r.findings.add(Warning, "state directory", "make sure that nothing else writes in the state directory",
			"%s given to two different entries; the first of each was used", counted(conflicts, "sequence was", "sequences were"))
	}
}

// gap counts sequences that no entry has.
type gap struct{ first, missing uint64 }

// add notes that the entry found has not the sequence expected.
func (g *gap) add(expected, found uint64) {
	if found <= expected {
		return
	}
	if g.missing == 0 {
		g.first = expected
	}
	g.missing += found - expected
}

// judgeEnd decides whether the run before ended as it should.
func (r *recovery) judgeEnd() {
	if len(r.snapshots)+len(r.listing.journals) == 0 {
		r.Clean = true // nothing was here
		return
	}
	if n := len(r.journals); n > 0 && r.journals[n-1].ended {
		r.Clean = r.Missing == 0 && r.BadLines == 0
		return
	}
	r.findings.add(Note, "state directory", "nothing to do", "the run before was not stopped in order")
}

// keepAside puts aside what could not be used, and removes what was never finished, unless the lock could not be had: then
// another may write here.
func (r *recovery) keepAside(unlocked error) {
	for _, c := range r.journals {
		stretches := c.bad
		if c.torn != nil {
			stretches = append(stretches, *c.torn)
		}
		if len(stretches) > 0 {
			r.aside = append(r.aside, aside{name: c.name, stretches: stretches})
		}
	}
	for _, a := range r.aside {
		err := unlocked
		if err == nil {
			err = a.keep(r.fs)
		}
		if err != nil {
			r.findings.add(Warning, a.name, "make the state directory writable", "it could not be kept aside: %v", err)
		}
	}
	if unlocked != nil {
		return
	}
	for _, name := range r.temporary {
		_ = r.fs.Remove(name) // it is never read, so it is no harm when it stays
	}
}
