package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// image is a directory as a run left it, and what was written in it.
type image struct {
	files map[string][]byte
	facts map[uint64]fact
	last  uint64
}

// smallImage has two snapshots and two journals: entries 1 to 8 are in both, 9 to 16 in the newer one, 17 to 24 in a journal only.
// A key is written once, so that every loss shows.
func smallImage(t *testing.T) image {
	t.Helper()
	d := newDisk(7)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	im := image{facts: map[uint64]fact{}}
	for i := range 24 {
		if i == 8 || i == 16 {
			if err := j.Snapshot(o.snapshot); err != nil {
				t.Fatal(err)
			}
		}
		f := fact{keyOf(i), fmt.Sprintf("value-%d", i)}
		im.last = mustWrite(t, j, o, f.Key, f.Value)
		im.facts[im.last] = f
	}
	mustBeDurable(t, j, im.last)
	im.files = d.files()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return im
}

// with is the files with one of them replaced.
func (im image) with(name string, data []byte) *disk {
	files := maps.Clone(im.files)
	files[name] = data
	return diskWith(files)
}

// recoverOn starts on the disk and stops at once.
func recoverOn(d *disk) (*owner, Recovered, []Finding, error) {
	j, o, err := openOn(d, quick())
	if err != nil {
		return nil, Recovered{}, nil, err
	}
	r, findings := j.recovered, j.Findings()
	return o, r, findings, j.Close()
}

// missing counts the facts that were not recovered, and returns an error for a value that nobody wrote.
func (im image) missing(o *owner) (int, error) {
	for key, got := range o.rows {
		if want := (fact{key, got.Value}); im.facts[got.Sequence] != want {
			return 0, fmt.Errorf("wrong value: %s has %+v", key, got)
		}
	}
	return len(im.facts) - len(o.rows), nil
}

// mustLoseAtMost recovers on the disk and checks that no wrong value comes back, that not more than that many are lost, and that
// every loss is told.
func (im image) mustLoseAtMost(t *testing.T, d *disk, most int, what string, args ...any) int {
	t.Helper()
	what = fmt.Sprintf(what, args...)
	o, r, findings, err := recoverOn(d)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return 0
	}
	lost, err := im.missing(o)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if lost > most {
		t.Errorf("%s: %d lost, at most %d allowed: %+v", what, lost, most, r)
	}
	if lost > 0 && len(findings) == 0 {
		t.Errorf("%s: %d lost and nobody told", what, lost)
	}
	return lost
}

func TestNoFlippedBitMakesAWrongValue(t *testing.T) {
	im := smallImage(t)
	flips, losses, worst := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(im.files)) {
		most := 2
		if strings.HasPrefix(name, snapshotPrefix) {
			most = 0 // the snapshot before and its journals have it all
		}
		for i := range im.files[name] {
			for bit := range 8 {
				if (8*i+bit)%flipStep != 0 {
					continue
				}
				data := slices.Clone(im.files[name])
				data[i] ^= 1 << bit
				lost := im.mustLoseAtMost(t, im.with(name, data), most, "%s, byte %d, bit %d", name, i, bit)
				flips++
				losses += lost
				worst = max(worst, lost)
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d flips: no wrong value, %d entries lost in all, at most %d by one flip", flips, losses, worst)
}

func TestEveryPrefixOfTheTailLosesOnlyWhatItLacks(t *testing.T) {
	im := smallImage(t)
	name := "journal-3"
	whole := im.files[name]
	for length := range whole {
		prefix := whole[:length]
		lines := max(0, bytes.Count(prefix, []byte("\n"))-1)
		if length > 0 && whole[length] == '\n' && lines+1 < bytes.Count(whole, []byte("\n")) && bytes.Contains(prefix, []byte("\n")) {
			lines++ // the last line lacks its newline only
		}
		lost := im.mustLoseAtMost(t, im.with(name, prefix), 8-lines, "%d bytes of %d", length, len(whole))
		if lost != 8-lines {
			t.Errorf("%d bytes of %d: %d lost, want %d", length, len(whole), lost, 8-lines)
		}
	}
}

func TestATornTailIsCutWithoutAlarmAndKeptAside(t *testing.T) {
	im := smallImage(t)
	whole := im.files["journal-3"]
	d := im.with("journal-3", whole[:len(whole)-5])
	_, r, findings, err := recoverOn(d)
	if err != nil {
		t.Fatal(err)
	}
	if r.TornBytes == 0 || r.BadLines != 0 {
		t.Errorf("recovered %+v", r)
	}
	for _, f := range findings {
		if f.Level != Note {
			t.Errorf("alarm: %v", f)
		}
	}
	kept := d.files()["journal-3.damaged"]
	torn := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1 : len(whole)-5]
	if !bytes.Contains(kept, torn) {
		t.Errorf("kept aside is %q, want %q in it", kept, torn)
	}
}

func TestZeroedSectorsLoseTheirLinesOnly(t *testing.T) {
	im := smallImage(t)
	for _, name := range slices.Sorted(maps.Keys(im.files)) {
		most := sector/80 + 2
		if strings.HasPrefix(name, snapshotPrefix) {
			most = 0
		}
		for at := 0; at < len(im.files[name]); at += sector {
			data := slices.Clone(im.files[name])
			clear(data[at:min(at+sector, len(data))])
			im.mustLoseAtMost(t, im.with(name, data), most, "%s zeroed at %d", name, at)
		}
	}
}

func TestBlocksInTheWrongPlaceMakeNoWrongValue(t *testing.T) {
	im, foreign := smallImage(t), foreignImage(t)
	name := "journal-3"
	data := im.files[name]
	const block = 128
	cut := func(at int) []byte { return data[at:min(at+block, len(data))] }
	for at := 0; at < len(data); at += block {
		before, after := data[:at], data[min(at+block, len(data)):]
		im.mustLoseAtMost(t, im.with(name, slices.Concat(before, cut(at), cut(at), after)), 2, "block %d twice", at)
		im.mustLoseAtMost(t, im.with(name, slices.Concat(before, after)), 3, "block %d missing", at)
		im.mustLoseAtMost(t, im.with(name, slices.Concat(before, foreign[at:min(at+block, len(foreign))], after)), 3, "block %d of another log", at)
		im.mustLoseAtMost(t, im.with(name, slices.Concat(before, im.files["journal-2"][at:min(at+block, len(im.files["journal-2"]))], after)), 3, "block %d of another generation", at)
		if at+2*block <= len(data) {
			im.mustLoseAtMost(t, im.with(name, slices.Concat(before, cut(at+block), cut(at), data[at+2*block:])), 6, "blocks %d and the next exchanged", at)
		}
	}
}

// foreignImage is the third journal of another directory, with other values under the same sequences and keys.
func foreignImage(t *testing.T) []byte {
	t.Helper()
	d := newDisk(8)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	for i := range 24 {
		if i == 8 || i == 16 {
			if err := j.Snapshot(o.snapshot); err != nil {
				t.Fatal(err)
			}
		}
		mustWrite(t, j, o, keyOf(i), fmt.Sprintf("other-%d", i))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return d.files()["journal-3"]
}

func TestLinesInTheWrongOrderAreAppliedBySequenceOnce(t *testing.T) {
	im := smallImage(t)
	name := "journal-3"
	lines := bytes.SplitAfter(im.files[name], []byte("\n"))
	lines = lines[:len(lines)-1] // after the last newline is nothing
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		shuffled := slices.Concat(lines[1:], lines[1:4])
		random.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
		data := append(slices.Clone(lines[0]), bytes.Join(shuffled, nil)...)
		o, r, _, err := recoverOn(im.with(name, data))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(o.order, []uint64{17, 18, 19, 20, 21, 22, 23, 24}) || r.Duplicates != 3 || r.Missing != 0 {
			t.Fatalf("applied %v, %+v", o.order, r)
		}
	}
}

func TestMissingLinesAreCounted(t *testing.T) {
	im := smallImage(t)
	lines := bytes.SplitAfter(im.files["journal-3"], []byte("\n"))
	data := bytes.Join(slices.Concat(lines[:3], lines[6:]), nil)
	_, r, findings, err := recoverOn(im.with("journal-3", data))
	if err != nil {
		t.Fatal(err)
	}
	if r.Missing != 3 || !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Level == Warning && strings.Contains(f.What, "3 entries are missing, the first is 19")
	}) {
		t.Errorf("%+v, %v", r, findings)
	}
}

func TestATailLostOnALineBoundaryIsNoticed(t *testing.T) {
	im := smallImage(t)
	d := diskWith(im.files)
	j, _, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(files map[string][]byte){
		"with the end marker": func(files map[string][]byte) {
			data := files["journal-4"]
			files["journal-4"] = data[:bytes.IndexByte(data, '\n')+1]
		},
		"in front of the end marker": func(files map[string][]byte) {
			data := files["journal-3"]
			files["journal-3"] = data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
		},
	} {
		files := d.files()
		damage(files)
		_, r, findings, err := recoverOn(diskWith(files))
		if err != nil {
			t.Fatal(err)
		}
		if r.Clean || len(findings) == 0 {
			t.Errorf("%s: not noticed: %+v", name, r)
		}
	}
}

func TestWithoutAnySnapshotTheJournalsServe(t *testing.T) {
	im := smallImage(t)
	files := maps.Clone(im.files)
	for name := range files {
		if strings.HasPrefix(name, snapshotPrefix) {
			files[name] = []byte("nothing of use")
		}
	}
	d := diskWith(files)
	im.mustLoseAtMost(t, d, 8, "no snapshot")
	for _, name := range []string{"snapshot-2.damaged", "snapshot-3.damaged"} {
		if _, ok := d.files()[name]; !ok {
			t.Errorf("%s is not kept aside", name)
		}
	}
}

func TestARefusedSnapshotGivesWayToTheOneBefore(t *testing.T) {
	im := smallImage(t)
	d := diskWith(im.files)
	j, err := Open(Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{}
	refusing := &refusal{owner: o, left: 1}
	if err := j.Recover(refusing.restore, o.apply); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if lost, err := im.missing(o); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	if r := j.recovered; r.BadSnapshots != 1 || r.Generation != 2 {
		t.Errorf("recovered %+v", r)
	}
}

func TestARefusedEntryIsKeptAsideAndCounted(t *testing.T) {
	im := smallImage(t)
	d := diskWith(im.files)
	j, err := Open(Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{refuse: func(sequence uint64) error {
		if sequence == 24 {
			return fmt.Errorf("no such account")
		}
		return nil
	}}
	if err := j.Recover(o.restore, o.apply); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if r := j.recovered; r.Refused != 1 || r.Entries != 7 || r.Sequence != 24 {
		t.Errorf("recovered %+v", r)
	}
	var refused []byte
	for raw := range bytes.Lines(im.files["journal-3"]) {
		if bytes.Contains(raw, []byte("value-23")) {
			refused = raw
		}
	}
	if kept := d.files()["journal-3.damaged"]; len(refused) == 0 || !bytes.HasSuffix(kept, refused) {
		t.Errorf("kept aside is %q, the line is %q", kept, refused)
	}
	// The owner does not hold entry 24, so its snapshot must not be taken to lack it.
	if err := j.Snapshot(o.snapshot); err != nil {
		t.Error(err)
	}
	if sequence := mustWrite(t, j, o, "new", "value"); sequence != 25 {
		t.Errorf("sequence %d was given out again", sequence)
	}
}

func TestWithoutTheLockNothingIsMovedOrRemoved(t *testing.T) {
	im := smallImage(t)
	damaged := bytes.Replace(im.files["journal-3"], []byte("value-23"), []byte("value-xx"), 1)
	d := im.with("journal-3", damaged)
	d.names["snapshot-3"].data[headerBytes] ^= 1
	d.names["snapshot-9.tmp"] = &inode{}
	before := d.files()
	d.fail = func(op, _ string) error {
		if op == "lock" {
			return unix.ENOSPC
		}
		return nil
	}
	j, _, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("closed with %v", err)
	}
	if diff := cmp.Diff(before, d.files()); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	told := 0
	for _, f := range j.Findings() {
		if strings.Contains(f.What, "could not be kept aside") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("findings %v", j.Findings())
	}
}

func TestAForeignFileWithTheHighestNumberUsesNoNumbersUp(t *testing.T) {
	im := smallImage(t)
	d := im.with("journal-9007199254740992", []byte("#!/bin/sh\n"))
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if lost, err := im.missing(o); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	o.answer(j)
	mustBeDurable(t, j, mustWrite(t, j, o, "new", "1"))
	if s := j.Stats(); s.Generation != 4 {
		t.Errorf("the next generation is %d", s.Generation)
	}
}

func TestSequencesThatAreUsedUpAreNotGivenOut(t *testing.T) {
	const highest = maxSequence - 1
	data := appendBegin(nil, begin{Format: Format, Log: hostileLog, Generation: 1})
	data = appendLine(data, lineCheck(hostileLog, 1), line{sequence: highest, kind: entryLine, body: []byte(`{"key":"a","value":"1"}`)})
	j, _, err := openOn(diskWith(map[string][]byte{"journal-1": data}), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if sequence, err := j.Append([]byte(`{}`), []byte(`{}`)); !errors.Is(err, errUsedUp) {
		t.Errorf("sequence %d, which nobody can read back: %v", sequence, err)
	}
	if sequence, err := j.Append([]byte(`{}`)); err != nil || sequence != maxSequence {
		t.Errorf("sequence %d, %v", sequence, err)
	}
	if sequence, err := j.Append([]byte(`{}`)); !errors.Is(err, errUsedUp) {
		t.Errorf("sequence %d, which nobody can read back: %v", sequence, err)
	}
}
