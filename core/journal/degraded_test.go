package journal

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// failing makes the operations fail whose numbers are from first up to before end, with err.
func failing(first, end int, err error, match func(op, name string) bool) func(op, name string) error {
	n := 0
	return func(op, name string) error {
		if !match(op, name) {
			return nil
		}
		n++
		if n >= first && n < end {
			return err
		}
		return nil
	}
}

func syncs(op, _ string) bool { return op == "sync" || op == "sync directory" }
func grows(op, _ string) bool { return op == "write" || op == "create" }

// tryUntilDurable answers wishes for a snapshot until the journal is not degraded any more.
func (o *owner) tryUntilDurable(t *testing.T, j *Journal) {
	t.Helper()
	for attempts := 0; ; attempts++ {
		changed, err := j.settledOr(o.last)
		if changed == nil && err == nil && j.Degraded() == nil {
			return
		}
		if attempts == 1000 {
			t.Fatalf("still degraded: %v", j.Degraded())
		}
		select {
		case <-changed:
		case <-j.SnapshotWanted():
			_ = j.Snapshot(o.snapshot)
		case <-time.After(30 * time.Second):
			t.Fatalf("nothing is tried: %v", j.Degraded())
		}
	}
}

// TestAWriteErrorAcknowledgesNothingAndHealsByItself lets the disk fail at every operation of a short life, for one operation and for
// many in a row. Afterwards the power fails, and what had been acknowledged has to be there.
func TestAWriteErrorAcknowledgesNothingAndHealsByItself(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		match func(op, name string) bool
	}{
		"sync fails":   {unix.EIO, syncs},
		"disk is full": {unix.ENOSPC, grows},
	} {
		t.Run(name, func(t *testing.T) {
			failures, degraded := 0, 0
			for _, length := range []int{1, 2, 5, 40} {
				for first := 1; ; first++ {
					hit, wasDegraded, err := failOnce(t, uint64(first), failing(first, first+length, test.err, test.match))
					if err != nil {
						t.Fatalf("operations %d to %d: %v", first, first+length, err)
					}
					if !hit {
						break
					}
					failures++
					if wasDegraded {
						degraded++
					}
				}
			}
			if degraded == 0 {
				t.Error("never degraded")
			}
			t.Logf("%d runs with errors, degraded in %d of them, no acknowledgement lost", failures, degraded)
		})
	}
}

func failOnce(t *testing.T, seed uint64, fail func(op, name string) error) (hit, degraded bool, err error) {
	random := rand.New(rand.NewPCG(seed, 3))
	d := newDisk(seed)
	d.fail = func(op, name string) error {
		err := fail(op, name)
		hit = hit || err != nil
		return err
	}
	j, o, err := openOn(d, quick())
	if err != nil {
		return hit, false, err
	}
	m := &model{facts: map[uint64]fact{}}
	m.life(j, o, random, 30)
	degraded = j.Degraded() != nil
	o.tryUntilDurable(t, j)
	m.life(j, o, random, 4)
	if err := abandon(j, m); err == nil && j.Degraded() != nil {
		return hit, degraded, errors.New("closed degraded without an error")
	}
	again, o, err := openOn(d.afterPowerCut(), quick())
	if err != nil {
		return hit, degraded, err
	}
	defer again.Close()
	return hit, degraded, m.check(o, again.recovered)
}

// TestALogThatBlocksHoldsNobodyUp takes a log that nobody reads, at the moment when the disk fails.
func TestALogThatBlocksHoldsNobodyUp(t *testing.T) {
	d := newDisk(1)
	out := &lockedBuffer{}
	j, err := Open(Options{FS: d, Limits: quick(), Logger: hclog.New(&hclog.LoggerOptions{Output: out})})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{}
	if err := j.Recover(o.restore, o.apply); err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	out.mu.Lock()
	d.mu.Lock()
	d.fail = func(string, string) error { return unix.ENOSPC }
	d.mu.Unlock()
	free := make(chan struct{})
	go func() {
		defer close(free)
		if err := j.Durable(t.Context(), mustWrite(t, j, o, "a", "1")); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("acknowledged: %v", err)
		}
		for range 3 * maxNotes {
			mustWrite(t, j, o, "a", "2")
			o.answer(j)
		}
		d.mu.Lock()
		d.fail = nil
		d.mu.Unlock()
		o.tryUntilDurable(t, j)
	}()
	select {
	case <-free:
	case <-time.After(30 * time.Second):
		t.Error("held up by the log")
	}
	out.mu.Unlock()
	<-free
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if text := out.String(); !strings.Contains(text, "journal degraded") || !strings.Contains(text, "no space left") {
		t.Errorf("logged:\n%s", text)
	}
}

// lockedBuffer is a log that blocks while the test holds its lock.
type lockedBuffer struct {
	mu sync.Mutex // guards Buffer
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func TestServingGoesOnWhileDegraded(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	o.answer(j)
	before := mustWrite(t, j, o, "a", "1")
	mustBeDurable(t, j, before)

	d.mu.Lock()
	d.fail = func(string, string) error { return unix.ENOSPC }
	d.mu.Unlock()
	lost := mustWrite(t, j, o, "a", "2")
	var degraded *DegradedError
	if err := j.Durable(t.Context(), lost); !errors.As(err, &degraded) || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("acknowledged, or for another reason: %v", err)
	}
	if err := j.Durable(t.Context(), before); err != nil {
		t.Errorf("what was durable is not any more: %v", err)
	}
	for range 100 {
		mustWrite(t, j, o, "a", "3")
	}
	if s := j.Stats(); s.Degraded == nil || s.Sequence != 102 || s.DurableSequence != before {
		t.Errorf("stats %+v", s)
	}
	if found := j.Findings(); len(found) == 0 || found[0].Level != Fault || !strings.Contains(found[0].What, "no space left") {
		t.Errorf("findings %v", found)
	}

	d.mu.Lock()
	d.fail = nil
	d.mu.Unlock()
	o.tryUntilDurable(t, j)
	if found := j.Findings(); len(found) != 0 {
		t.Errorf("findings after it healed: %v", found)
	}
}

// TestPausesBetweenAttemptsGrow also shows that a full disk is not filled with what attempts leave behind.
func TestPausesBetweenAttemptsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		j, o, err := openOn(d, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		o.answer(j)
		d.mu.Lock()
		d.fail = func(op, _ string) error {
			if op == "write" {
				return unix.ENOSPC
			}
			return nil
		}
		d.mu.Unlock()
		mustWrite(t, j, o, "a", "1")
		var pauses []time.Duration
		last := time.Now()
		for range 12 {
			<-j.SnapshotWanted()
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			if err := j.Snapshot(o.snapshot); err == nil {
				t.Fatal("written on a full disk")
			}
		}
		want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
			3200 * time.Millisecond, 6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 30 * time.Second, 30 * time.Second}
		if !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		if names := d.files(); len(names) != 2 {
			t.Errorf("files left behind: %d", len(names))
		}
		if err := j.Close(); err == nil {
			t.Error("closed degraded without an error")
		}
	})
}

func TestASyncIsNeverTriedAgainOnTheSameFile(t *testing.T) {
	d := newDisk(1)
	failed := map[string]bool{}
	d.fail = func(op, name string) error {
		if failed[name] && (op == "sync" || op == "write") && strings.HasPrefix(name, journalPrefix) {
			t.Errorf("%s %s after its sync had failed", op, name)
		}
		if op == "sync" && strings.HasPrefix(name, journalPrefix) && len(failed) < 3 {
			failed[name] = true
			return unix.EIO
		}
		return nil
	}
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range 20 {
		sequence := mustWrite(t, j, o, keyOf(i), "1")
		_ = j.Durable(t.Context(), sequence)
		o.tryUntilDurable(t, j)
	}
	if len(failed) != 3 {
		t.Errorf("%d syncs failed, want 3", len(failed))
	}
}

func TestADiskThatDoesNotAnswerHoldsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("")
		j, o, err := openOn(g, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		g.pass <- struct{}{}
		o.answer(j)
		sequence := mustWrite(t, j, o, "a", "1")
		start := time.Now()
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				var degraded *DegradedError
				if err := j.Durable(context.Background(), sequence); !errors.As(err, &degraded) {
					t.Errorf("acknowledged: %v", err)
				}
			})
		}
		waiting.Wait()
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		close(g.pass) // the disk is back, and its answer comes too late to count
		o.tryUntilDurable(t, j)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAppendNeverWaitsForASlowDiskAndStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("")
		j, o, err := openOn(g, Limits{PendingBytes: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		g.pass <- struct{}{}
		o.answer(j)
		for range 1000 {
			mustWrite(t, j, o, "a", "1")
		}
		if err := j.Degraded(); !errors.Is(err, errBehind) {
			t.Errorf("degraded: %v", err)
		}
		if len(j.pending) > 10_000 {
			t.Errorf("%d bytes are buffered", len(j.pending))
		}
		close(g.pass)
		o.tryUntilDurable(t, j)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAJournalWithoutASnapshotIsGivenUpAtItsBound(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, Limits{RotateEntries: 10, JournalBytes: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	o.answer(j)
	for i := range 1000 {
		sequence := mustWrite(t, j, o, keyOf(i), "1")
		if err := j.Durable(t.Context(), sequence); err != nil {
			break
		}
	}
	if err := j.Degraded(); !errors.Is(err, errFull) {
		t.Fatalf("degraded: %v", err)
	}
	total := 0
	for _, data := range d.files() {
		total += len(data)
	}
	if total > 22_000 {
		t.Errorf("%d bytes on disk", total)
	}
	o.tryUntilDurable(t, j)
}

func TestASnapshotThatFailsDoesNotHoldUpAcknowledging(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, Limits{RotateEntries: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	o.answer(j)
	d.mu.Lock()
	d.fail = func(_, name string) error {
		if strings.HasSuffix(name, temporarySuffix) {
			return unix.ENOSPC
		}
		return nil
	}
	d.mu.Unlock()
	for i := range 50 {
		mustBeDurable(t, j, mustWrite(t, j, o, keyOf(i), "1"))
		o.answer(j)
	}
	if s := j.Stats(); s.SnapshotFailures == 0 || s.Degraded != nil {
		t.Errorf("stats %+v", s)
	}
	m := &model{facts: map[uint64]fact{}}
	for key, r := range o.rows {
		m.facts[r.Sequence] = fact{key, r.Value}
	}
	_ = abandon(j, m)
	again, back, err := openOn(d.afterPowerCut(), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := m.check(back, again.recovered); err != nil {
		t.Error(err)
	}
}

func TestASnapshotOverItsBoundIsNotWritten(t *testing.T) {
	d := newDisk(1)
	w := &bodyWriter{file: &diskFile{disk: d, inode: &inode{}, name: "x"}, length: MaxSnapshotBytes - 10}
	if _, err := w.Write(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if _, err := w.Write(make([]byte, 1)); err == nil {
		t.Error("written over the bound")
	}
}

func TestAFileThatWasTakenAwayAcknowledgesNothing(t *testing.T) {
	d := newDisk(1)
	j, o, err := openOn(d, quick())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	o.answer(j)
	d.mu.Lock()
	clear(d.names)
	d.mu.Unlock()
	if err := j.Durable(t.Context(), mustWrite(t, j, o, "a", "1")); !errors.Is(err, errUnlinked) {
		t.Fatalf("acknowledged: %v", err)
	}
	o.tryUntilDurable(t, j)
	again, back, err := openOn(d.afterKill(), quick())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if back.rows["a"].Value != "1" {
		t.Errorf("recovered %v", back.rows)
	}
}
