package journal

import "time"

// Stats is what the journal counts, taken at one moment.
type Stats struct {
	Generation      uint64
	Sequence        uint64 // of the last entry appended
	DurableSequence uint64
	JournalBytes    int64  // of the journal that is being written
	Entries         uint64 // appended in this run
	Commits         uint64 // syncs that made entries durable

	Snapshots        uint64
	SnapshotFailures uint64
	SnapshotBytes    int64         // of the newest
	SnapshotDuration time.Duration // from the start of the generation until it was durable

	// Degraded is nil, or since when and why nothing is acknowledged as durable.
	Degraded *DegradedError
}
