package journal

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// binding is about as long as a binding is.
func binding(i int) fact {
	return fact{
		Key:   fmt.Sprintf("claude/%08x-1111-4222-8333-444455556666 claude-sonnet", i),
		Value: "work 2026-11-30T02:00:00.123456789Z 2026-11-30T02:30:00.123456789Z initial session placed on the account with most left",
	}
}

// TestAHundredThousandEntries reports how long a start takes from a journal alone, and what an entry weighs. What a snapshot costs
// is its owner's business.
func TestAHundredThousandEntries(t *testing.T) {
	const n = 100_000
	dir := filepath.Join(t.TempDir(), "state")
	o := &owner{}
	j, err := Open(Options{Dir: dir, Limits: Limits{RotateEntries: 2 * n, RotateBytes: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Recover(o.restore, o.apply); err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	for i := range n {
		sequence := mustWrite(t, j, o, binding(i).Key, binding(i).Value)
		if i%1000 == 0 {
			mustBeDurable(t, j, sequence)
		}
	}
	mustBeDurable(t, j, n)
	journalBytes := j.Stats().JournalBytes
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	applied := 0
	began := time.Now()
	r, _, err := Inspect(dir, o.restore, func(uint64, []byte) error { applied++; return nil })
	if err != nil || applied != n || !r.Clean {
		t.Errorf("%d entries, %+v, %v", applied, r, err)
	}
	t.Logf("journal of %d bytes, %d an entry: read in %v", journalBytes, journalBytes/n, time.Since(began))
}

// TestASnapshotBeingWrittenHoldsUpNobody appends while a snapshot stands half written, for as long as it likes.
func TestASnapshotBeingWrittenHoldsUpNobody(t *testing.T) {
	j, o := openIn(t, filepath.Join(t.TempDir(), "state"), quick())
	mustBeDurable(t, j, mustWrite(t, j, o, "a", "0"))
	begun, finish := make(chan struct{}), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		err := j.Snapshot(func(w io.Writer) (uint64, error) {
			sequence, err := o.snapshot(w)
			close(begun)
			<-finish
			return sequence, err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	for i := range 100 {
		mustBeDurable(t, j, mustWrite(t, j, o, "a", keyOf(i)))
	}
	close(finish)
	done.Wait()
}

// BenchmarkAppendAndWait measures appending, and waiting for the disk, with and without a snapshot of 30 MB being written over and
// over.
func BenchmarkAppendAndWait(b *testing.B) {
	for _, snapshots := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshots=%v", snapshots), func(b *testing.B) {
			j, o := openIn(b, filepath.Join(b.TempDir(), "state"), Limits{})
			mustBeDurable(b, j, mustWrite(b, j, o, "a", "0"))
			ctx, stop := context.WithCancel(b.Context())
			var writing sync.WaitGroup
			if snapshots {
				writing.Go(func() { o.snapshots(ctx, b, j) })
			}
			var appends, waits []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				sequence := mustWrite(b, j, o, binding(i).Key, binding(i).Value)
				appended := time.Now()
				mustBeDurable(b, j, sequence)
				appends, waits = append(appends, appended.Sub(start)), append(waits, time.Since(appended))
			}
			stop()
			writing.Wait()
			for name, d := range map[string]time.Duration{
				"append-p50-ns": quantile(appends, .5), "append-p99-ns": quantile(appends, .99),
				"durable-p50-ns": quantile(waits, .5), "durable-p99-ns": quantile(waits, .99), "durable-max-ns": quantile(waits, 1),
			} {
				b.ReportMetric(float64(d), name)
			}
		})
	}
}

// snapshots writes one after the other until ctx ends.
func (o *owner) snapshots(ctx context.Context, t testing.TB, j *Journal) {
	for ctx.Err() == nil {
		if err := j.Snapshot(o.padded); err != nil {
			t.Error(err)
			return
		}
	}
}

// padded is a snapshot as long as that of a hundred thousand bindings.
func (o *owner) padded(w io.Writer) (uint64, error) {
	sequence, err := o.snapshot(w)
	for i := 0; i < 30 && err == nil; i++ {
		_, err = w.Write(slices.Repeat([]byte(" "), 1<<20))
	}
	return sequence, err
}

func quantile(durations []time.Duration, q float64) time.Duration {
	slices.Sort(durations)
	return durations[min(int(q*float64(len(durations))), len(durations)-1)]
}
