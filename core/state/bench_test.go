package state

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/placement"
)

// manyAccounts are read at different levels.
func manyAccounts(b *testing.B, n int) *fixture {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("a", i))
	}
	f := open(b, names...)
	for i, name := range names {
		f.read(name, float64(i%90), float64(i%80))
	}
	return f
}

func BenchmarkNewSession(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("accounts=%d", n), func(b *testing.B) {
			f := manyAccounts(b, n)
			b.ReportAllocs()
			for b.Loop() {
				f.attempts++
				d, err := f.Place(placement.Request{Attempt: f.attempts, Session: "claude/s", Provider: "claude", Model: "m", Binds: true, At: f.now})
				if err != nil || !d.Placed {
					b.Fatal(err)
				}
				f.End(f.attempts, f.now)
			}
		})
	}
}

func BenchmarkBoundRequest(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("accounts=%d/bindings=100000", n), func(b *testing.B) {
			f := manyAccounts(b, n)
			f.fill(100_000, time.Second)
			f.recover()
			keys := make([]string, 0, 100)
			for i := range 100 {
				keys = append(keys, fmt.Sprintf("claude/%08x-1111-4222-8333-444455556666", i*997))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.attempts++
				d, err := f.Place(placement.Request{Attempt: f.attempts, Session: keys[i%len(keys)], Provider: "claude", Model: "claude-opus-4-1", Binds: true, At: f.now})
				if err != nil || d.How != placement.HowBound {
					b.Fatal(d.How, err)
				}
				if _, err := f.Accept(f.attempts, f.now); err != nil {
					b.Fatal(err)
				}
				f.End(f.attempts, f.now)
			}
		})
	}
}

// BenchmarkStart opens a state directory until requests can be placed: from a journal alone, as a killed daemon may leave
// it, and from a snapshot.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, from := range []string{"journal", "snapshot"} {
			b.Run(fmt.Sprintf("from=%s/bindings=%d", from, n), func(b *testing.B) {
				dir := filepath.Join(b.TempDir(), "state")
				fillDirectory(b, dir, n, from == "snapshot")
				b.ReportAllocs()
				var worked time.Duration
				for b.Loop() {
					begun := processorTime(b)
					f := openDirectory(b, dir)
					worked += processorTime(b) - begun
					b.StopTimer()
					if got := f.Stats().Bindings; got != n {
						b.Fatalf("%d bindings", got)
					}
					f.must(f.Store.log.Close())
					b.StartTimer()
				}
				b.ReportMetric(float64(worked.Milliseconds())/float64(b.N), "processor-ms/op")
			})
		}
	}
}

// openDirectory opens a store over a directory whose journal may be as long as it likes.
func openDirectory(b *testing.B, dir string) *fixture {
	b.Helper()
	f := &fixture{t: b, now: start}
	for i := range 10 {
		f.configs = append(f.configs, config(fmt.Sprint("a", i)))
	}
	log, err := journal.Open(journal.Options{Dir: dir, Limits: journal.Limits{RotateBytes: 1 << 30, RotateEntries: 1 << 30}})
	f.must(err)
	f.Store, err = Open(log, Settings{})
	f.must(err)
	f.must(f.ApplyAccounts(f.configs, f.now))
	return f
}

func fillDirectory(b *testing.B, dir string, n int, snapshot bool) {
	b.Helper()
	f := openDirectory(b, dir)
	f.must(f.Snapshot()) // so that the next one begins a new journal
	f.fill(n, time.Second)
	if snapshot {
		f.must(f.Snapshot())
	}
	f.must(f.Close())
}

// BenchmarkNewSessionBesideSnapshots measures new sessions, from placement until the first byte may go out, with and without
// snapshots of a hundred thousand bindings being written one after the other.
func BenchmarkNewSessionBesideSnapshots(b *testing.B) {
	for _, snapshots := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshots=%v", snapshots), func(b *testing.B) {
			f, stop := overJournal(b, filepath.Join(b.TempDir(), "state"))
			f.fill(100_000, time.Millisecond)
			ctx, enough := context.WithCancel(b.Context())
			var writing sync.WaitGroup
			if snapshots {
				writing.Go(func() {
					for ctx.Err() == nil {
						if err := f.Snapshot(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			var placed, durable []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				attempt, d := f.ask(fmt.Sprint("claude/new-", i), "m")
				if !d.Placed {
					b.Fatal("nothing placed")
				}
				sequence := f.accept(attempt)
				placed = append(placed, time.Since(begun))
				f.must(f.Durable(ctx, sequence))
				durable = append(durable, time.Since(begun))
				f.end(attempt)
			}
			enough()
			writing.Wait()
			stop()
			reportQuantiles(b, "placed", placed)
			reportQuantiles(b, "durable", durable)
		})
	}
}

func reportQuantiles(b *testing.B, name string, durations []time.Duration) {
	b.Helper()
	slices.Sort(durations)
	for quantile, q := range map[string]float64{"p50": .5, "p99": .99, "max": 1} {
		b.ReportMetric(float64(durations[int(q*float64(len(durations)-1))]), name+"-"+quantile+"-ns")
	}
}

func BenchmarkSnapshot(b *testing.B) {
	f := manyAccounts(b, 10)
	f.fill(100_000, time.Second)
	var body bytes.Buffer
	b.ReportAllocs()
	begun := processorTime(b)
	for b.Loop() {
		body.Reset()
		f.must(writeSnapshot(&body, f.db.Txn(false), f.sequence))
	}
	b.ReportMetric(float64((processorTime(b)-begun).Milliseconds())/float64(b.N), "processor-ms/op")
	b.ReportMetric(float64(body.Len())/100_000, "bytes/binding")
}

// BenchmarkMemory reports what a binding holds of the heap in a recovered store.
func BenchmarkMemory(b *testing.B) {
	f := manyAccounts(b, 10)
	f.fill(100_000, time.Second)
	f.must(f.Snapshot())
	for b.Loop() {
		f.Store = nil
		before := heap()
		f.recover()
		b.ReportMetric(float64(heap()-before)/100_000, "heap-bytes/binding")
	}
	runtime.KeepAlive(f)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// processorTime that this process has used. On a machine that has other things to do it tells more than a clock.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
