//go:build fault

package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/placement"
)

// kept is a store over a journal in a real directory, with the goroutine that answers its wishes.
type kept struct {
	*fixture
	journal *journal.Journal
	stop    func()
}

func openKept(t *testing.T, dir string) *kept {
	t.Helper()
	log, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(log, Settings{})
	if err != nil {
		t.Fatal(err, log.Close())
	}
	k := &kept{fixture: &fixture{Store: store, t: t, now: time.Now().UTC(), configs: []AccountConfig{config("a"), config("b")}}, journal: log}
	k.must(store.ApplyAccounts(k.configs, k.now))
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { store.Run(ctx) })
	k.stop = func() { stop(); serving.Wait() }
	return k
}

// fill makes n bindings that were used lately, a thousand entries at a time.
func (k *kept) fill(n int) {
	k.t.Helper()
	var entries []entry
	for i := range n {
		at := k.now.Add(-time.Duration(n-i) * time.Millisecond)
		entries = append(entries, &bindingRow{
			Session: fmt.Sprintf("claude/%08x-1111-4222-8333-444455556666", i), Model: "claude-opus-4-1",
			Account: k.configs[i%len(k.configs)].ID.Name, BoundAt: at, LastUsed: at, BoundBy: BoundInitially, Cadence: 21,
		})
		if len(entries) == 1000 || i == n-1 {
			k.mu.Lock()
			sequence, err := k.commit(entries...)
			k.mu.Unlock()
			k.must(err)
			k.durable(sequence)
			entries = nil
		}
	}
}

func (k *kept) durable(sequence uint64) {
	k.t.Helper()
	if err := k.Durable(k.t.Context(), sequence); err != nil {
		k.t.Fatal(err)
	}
}

// TestStartsWithManyBindings reports how long a start takes with a journal alone and with a snapshot, and what a binding costs.
func TestStartsWithManyBindings(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			k := openKept(t, dir)
			k.fill(n)
			k.stop()
			k.must(k.Close())
			for _, from := range []string{"journal and what snapshots there are", "snapshot"} {
				took, work, bytes := startOnce(t, dir, n)
				t.Logf("%d bindings from the %s: recovered in %v with %v of processor time, %d bytes of heap a binding", n, from,
					took.Round(time.Millisecond), work.Round(time.Millisecond), bytes/uint64(n))
			}
		})
	}
}

// startOnce opens the state, checks that all is there, and makes a snapshot of it. The processor time tells more on a machine that has
// other things to do.
func startOnce(t *testing.T, dir string, n int) (took, work time.Duration, bytes uint64) {
	t.Helper()
	before := heap()
	begun, worked := time.Now(), processorTime(t)
	k := openKept(t, dir)
	took, work = time.Since(begun), processorTime(t)-worked
	bytes = heap() - before
	if got := k.Stats().Bindings; got != n {
		t.Errorf("%d bindings, want %d", got, n)
	}
	k.must(k.Snapshot())
	s := k.journal.Stats()
	t.Logf("snapshot of %d bytes in %v", s.SnapshotBytes, s.SnapshotDuration.Round(time.Millisecond))
	k.stop()
	k.must(k.Close())
	return took, work, bytes
}

// TestSnapshotsHoldUpNoRequest reports how long new sessions take, from placement until the first byte may go out, while snapshots of
// a hundred thousand bindings are written one after the other, and while none is.
func TestSnapshotsHoldUpNoRequest(t *testing.T) {
	k := openKept(t, filepath.Join(t.TempDir(), "state"))
	k.fill(100_000)
	for _, snapshots := range []bool{false, true} {
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		written := 0
		if snapshots {
			writing.Go(func() {
				for ctx.Err() == nil {
					if err := k.Snapshot(); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
						return
					}
					written++
				}
			})
		}
		var placed, whole []time.Duration
		for i := range 3000 {
			begun := time.Now()
			k.attempts++
			d, err := k.Place(placement.Request{
				Attempt: k.attempts, Session: fmt.Sprintf("claude/new-%v-%d", snapshots, i), Provider: "claude", Model: "m", Binds: true, At: k.now,
			})
			if err != nil || !d.Placed {
				t.Fatal(d, err)
			}
			sequence, err := k.Accept(k.attempts, k.now)
			if err != nil {
				t.Fatal(err)
			}
			placed = append(placed, time.Since(begun))
			k.durable(sequence)
			whole = append(whole, time.Since(begun))
			k.Complete(k.attempts, k.now)
		}
		stop()
		writing.Wait()
		t.Logf("snapshots being written: %v (%d): placed and accepted p50 %v p99 %v max %v, durable p50 %v p99 %v max %v", snapshots, written,
			at(placed, .5), at(placed, .99), at(placed, 1), at(whole, .5), at(whole, .99), at(whole, 1))
	}
	k.stop()
	k.must(k.Close())
}

func at(durations []time.Duration, q float64) time.Duration {
	slices.Sort(durations)
	return durations[int(q*float64(len(durations)-1))].Round(time.Microsecond)
}
