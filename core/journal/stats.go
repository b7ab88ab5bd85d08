package journal

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats is what the journal measures, taken at one moment.
type Stats struct {
	Generation      uint64
	Sequence        uint64 // of the last entry appended
	DurableSequence uint64
	JournalBytes    int64 // of the journal that is being written
	JournalEntries  int
	Entries         uint64 // appended in this run
	Commits         uint64 // syncs that made entries durable
	WriteErrors     uint64

	Snapshots        uint64
	SnapshotFailures uint64
	SnapshotBytes    int64 // of the newest
	SnapshotSequence uint64
	SnapshotDuration time.Duration // from the start of the generation until it was durable

	// Degraded is nil, or since when and why nothing is acknowledged as durable.
	Degraded *DegradedError

	Append Latency // the call to Append
	Commit Latency // write and sync of one group
	Wait   Latency // calls to Durable that had to wait
}

// Latency is a histogram of durations. Bucket i counts those shorter than LatencyBound(i) and not shorter than the bound before.
type Latency struct {
	Count   uint64
	Sum     time.Duration
	Buckets [latencyBuckets]uint64
}

// Two buckets for each power of two of a nanosecond; the last one holds all from about 25 minutes up.
const latencyBuckets = 2 * 41

// LatencyBound is the upper bound of bucket i.
func LatencyBound(i int) time.Duration {
	power := time.Duration(1) << (i / 2)
	return power + power/2*time.Duration(i%2)
}

// Quantile returns an upper bound of the duration that the share q of all stayed under, at most half again too long.
func (l Latency) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(l.Count))
	for i, n := range l.Buckets {
		if rank < n {
			return LatencyBound(i)
		}
		rank -= n
	}
	return LatencyBound(latencyBuckets - 1)
}

// recorder is a Latency that is being measured.
type recorder struct {
	sum     atomic.Int64
	buckets [latencyBuckets]atomic.Uint64
}

func (r *recorder) record(d time.Duration) {
	d = max(d, 0)
	r.sum.Add(int64(d))
	r.buckets[latencyBucket(d)].Add(1)
}

// latencyBucket is the first bucket whose bound is above d.
func latencyBucket(d time.Duration) int {
	if d < 1 {
		return 0
	}
	power := bits.Len64(uint64(d)) - 1
	i := 2*power + 1
	if d >= LatencyBound(i) {
		i++
	}
	return min(i, latencyBuckets-1)
}

func (r *recorder) load() Latency {
	l := Latency{Sum: time.Duration(r.sum.Load())}
	for i := range r.buckets {
		l.Buckets[i] = r.buckets[i].Load()
		l.Count += l.Buckets[i]
	}
	return l
}
