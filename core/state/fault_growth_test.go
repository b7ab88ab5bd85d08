//go:build fault

package state

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/journal"
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

// TestStartsWithManyBindings reports how long a start takes with a journal alone and with a snapshot, and what a binding costs.
func TestStartsWithManyBindings(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			k := openKept(t, dir)
			k.fill(n, time.Millisecond)
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
