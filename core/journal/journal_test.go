package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestEntriesComeBackInOrder(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	for i := range 10 {
		mustBeDurable(t, j, mustWrite(t, j, o, keyOf(i), "first"))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, again, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(again.order, want) {
		t.Errorf("applied %v, want %v", again.order, want)
	}
	r := j.recovered
	if !r.Clean || r.Sequence != 10 || r.Entries != 10 || r.Missing != 0 {
		t.Errorf("recovered %+v", r)
	}
	if found := j.Findings(); len(found) != 0 {
		t.Errorf("findings after a clean stop: %v", found)
	}
	if sequence := mustWrite(t, j, again, "a", "b"); sequence != 11 {
		t.Errorf("sequences start over at %d", sequence)
	}
}

func TestEntriesOfASnapshotAreNotAppliedAgain(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, j, o, "a", "1")
	mustWrite(t, j, o, "b", "1")
	if err := j.Snapshot(o.snapshot); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, j, o, "a", "2")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, again, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if !slices.Equal(again.order, []uint64{3}) || again.rows["a"].Value != "2" || again.rows["b"].Value != "1" {
		t.Errorf("applied %v, rows %v", again.order, again.rows)
	}
}

func TestAppendRefusesWhatIsNotOneObjectOnOneLine(t *testing.T) {
	j, _, err := openOn(newDisk(1), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for name, entry := range map[string]string{
		"empty":       ``,
		"array":       `[]`,
		"two objects": `{}{}`,
		"newline":     "{\n}",
		"cut":         `{"a":`,
		"too long":    `{"a":"` + strings.Repeat("x", MaxEntryBytes) + `"}`,
	} {
		if _, err := j.Append([]byte(entry)); !errors.Is(err, ErrEntryRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sequence, err := j.Append([]byte(`{}`)); err != nil || sequence != 1 {
		t.Errorf("a refused entry took a sequence: %d, %v", sequence, err)
	}
}

func TestEntriesAreAddedTogetherOrNotAtAll(t *testing.T) {
	d := newDisk(1)
	j, _, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	good := func(key string) []byte { return fmt.Appendf(nil, `{"key":%q,"value":"1"}`, key) }
	if sequence, err := j.Append(good("a"), good("b"), good("c")); err != nil || sequence != 3 {
		t.Errorf("sequence %d, %v", sequence, err)
	}
	if _, err := j.Append(good("d"), []byte(`[]`), good("e")); !errors.Is(err, ErrEntryRefused) {
		t.Errorf("not refused: %v", err)
	}
	if s := j.Stats(); s.Entries != 3 || s.Sequence != 3 {
		t.Errorf("%d entries up to %d", s.Entries, s.Sequence)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	o, r, _, err := recoverOn(d)
	if err != nil || !slices.Equal(o.order, []uint64{1, 2, 3}) || !r.Clean {
		t.Errorf("recovered %v, %+v, %v", o.order, r, err)
	}
}

func TestTheLongestEntryComesBack(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	room := MaxEntryBytes - len(`{"key":"a","value":""}`)
	mustWrite(t, j, o, "a", strings.Repeat("x", room))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, again, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if len(again.rows["a"].Value) != room {
		t.Errorf("recovered %d bytes of %d: %+v", len(again.rows["a"].Value), room, j.recovered)
	}
}

func TestNothingIsTakenBeforeRecoverOrAfterClose(t *testing.T) {
	d := newDisk(1)
	j, err := Open(Options{FS: d})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append([]byte(`{}`)); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("append before recover: %v", err)
	}
	if err := j.Durable(t.Context(), 1); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("durable before recover: %v", err)
	}
	o := &owner{}
	if err := j.Snapshot(o.snapshot); !errors.Is(err, ErrNotRecovered) {
		t.Errorf("snapshot before recover: %v", err)
	}
	if err := j.Recover(o.restore, o.apply); err != nil {
		t.Fatal(err)
	}
	if err := j.Recover(o.restore, o.apply); err == nil {
		t.Error("recovered twice")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append([]byte(`{}`)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := j.Snapshot(o.snapshot); !errors.Is(err, ErrClosed) {
		t.Errorf("snapshot after close: %v", err)
	}
	if err := j.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// gate is a disk whose file syncs wait until they are let through.
type gate struct {
	*disk
	prefix  string // of the files that are held up
	arrived chan string
	pass    chan struct{}
}

func newGate(prefix string) *gate {
	return &gate{newDisk(1), prefix, make(chan string, 100), make(chan struct{}, 100)}
}

func (g *gate) Create(name string) (File, error) {
	file, err := g.disk.Create(name)
	if err != nil || !strings.HasPrefix(name, g.prefix) {
		return file, err
	}
	return &gatedFile{file, name, g}, nil
}

type gatedFile struct {
	File
	name string
	gate *gate
}

func (f *gatedFile) Sync() error {
	f.gate.arrived <- f.name
	<-f.gate.pass
	return f.File.Sync()
}

// TestDurableNeverGoesBack lets a snapshot be durable while fewer entries than it holds are being synced.
func TestDurableNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(journalPrefix)
		j, o, err := openOn(g, quick())
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, j, o, "a", "1")
		<-g.arrived // it is being synced
		last := mustWrite(t, j, o, "b", "1")
		o.answer(j)
		if durable := j.DurableSequence(); durable != last {
			t.Errorf("%d is durable, the snapshot holds %d", durable, last)
		}
		g.pass <- struct{}{}
		<-g.arrived // the writer is done with the first, and syncs the second
		if durable := j.DurableSequence(); durable != last {
			t.Errorf("it went back to %d from %d", durable, last)
		}
		close(g.pass)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAllWhoWaitShareOneSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("")
		j, o, err := openOn(g, quick())
		if err != nil {
			t.Fatal(err)
		}
		g.pass <- struct{}{}
		o.answer(j)
		<-g.arrived

		first := mustWrite(t, j, o, "a", "1")
		<-g.arrived // the first entry is being synced
		var waiting sync.WaitGroup
		waiting.Go(func() { mustBeDurable(t, j, first) })
		for range 100 {
			waiting.Go(func() { mustBeDurable(t, j, mustWrite(t, j, o, "b", "1")) })
		}
		synctest.Wait()
		if durable := j.DurableSequence(); durable != 0 {
			t.Errorf("%d acknowledged before the sync", durable)
		}
		g.pass <- struct{}{}
		g.pass <- struct{}{}
		waiting.Wait()
		if stats := j.Stats(); stats.Commits != 2 || stats.DurableSequence != 101 {
			t.Errorf("%d syncs made %d entries durable, want 2 and 101", stats.Commits, stats.DurableSequence)
		}
		g.pass <- struct{}{}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDurableReturnsWhenTheCallerGivesUp(t *testing.T) {
	j, _, err := openOn(newDisk(1), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Durable(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWhatWasReadBackIsNotDurableBeforeItIsInASnapshot(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	last := mustWrite(t, j, o, "a", "1")
	mustBeDurable(t, j, last)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, o, err = openOn(d.afterKill(), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if durable := j.DurableSequence(); durable != 0 {
		t.Errorf("%d claimed on the word of the page cache", durable)
	}
	o.answer(j)
	if durable := j.DurableSequence(); durable != last {
		t.Errorf("%d durable after the first snapshot, want %d", durable, last)
	}
}

func TestASnapshotIsWantedWhenTheJournalHasGrown(t *testing.T) {
	for name, limits := range map[string]Limits{
		"by count": {RotateEntries: 10},
		"by bytes": {RotateBytes: 900},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(1)
			j, o, err := openOn(d, limits)
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			o.answer(j)
			for i := range 100 {
				mustBeDurable(t, j, mustWrite(t, j, o, "a", keyOf(i)))
				o.answer(j)
			}
			if s := j.Stats(); s.Snapshots < 9 || s.Snapshots > 15 {
				t.Errorf("%d snapshots for 100 entries", s.Snapshots)
			}
			if names := d.files(); len(names) != 4 {
				t.Errorf("%d files, want two generations: %v", len(names), names)
			}
		})
	}
}

func TestAnOwnerThatForgotAnEntryMakesNoSnapshot(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	mustWrite(t, j, o, "a", "1")
	o.last = 0
	if err := j.Snapshot(o.snapshot); err == nil {
		t.Error("a snapshot without the last entry was taken")
	}
	if _, ok := d.files()["snapshot-1"]; ok {
		t.Error("it is in its place")
	}
}
