package state

import (
	"context"
	"io"
)

// Log keeps what state appends. It knows bytes, not meaning: an entry is one JSON object on one line, without a newline
// in it; a snapshot body is JSON. Sequences begin at 1, grow by 1 with every entry and never start over, not after a
// snapshot and not after a restart. Every method is safe for concurrent use.
type Log interface {
	// Recover is called once, before anything else. It calls restore with the newest snapshot whose checksum holds, if
	// there is one, and then apply for every good entry that the snapshot may not hold yet, each once, in ascending
	// sequence. If restore fails, the next older snapshot is tried: restore starts from nothing each time. An entry that
	// apply refuses is treated as a bad line: kept aside and counted. An error that is errors.ErrUnsupported, from either,
	// means that a newer release wrote this: recovery ends, and every byte is left as it is.
	Recover(restore func(sequence uint64, body []byte) error, apply func(sequence uint64, entry []byte) error) error
	// Append adds entries under sequences that follow each other, and returns that of the last. It never waits for a disk,
	// and a log that is degraded still counts. The entries are not kept after the call. An error means that the log is
	// closed or an entry too long, and that none was added.
	Append(entries ...[]byte) (sequence uint64, err error)
	// Durable returns nil once every entry up to sequence is on stable storage; one sync serves all who wait. It returns
	// at once, with Degraded's error, while the log is degraded, and ctx's error when ctx ends.
	Durable(ctx context.Context, sequence uint64) error
	// DurableSequence is the last sequence known to be on stable storage. It waits for nothing that takes long: first bytes ask.
	DurableSequence() uint64
	// Snapshot starts a new generation: entries appended from now on go there. Then it calls write once, holding no lock
	// of its own; what write writes must hold every entry whose Append had returned when write was called, and may hold
	// later ones; sequence is that of the last entry it surely holds. It ends the degraded state when all is durable.
	Snapshot(write func(w io.Writer) (sequence uint64, err error)) error
	// SnapshotWanted gets a value when the log has grown enough, or when a new generation is needed to leave the degraded
	// state. State answers with Snapshot.
	SnapshotWanted() <-chan struct{}
	// Degraded is nil, or why nothing is acknowledged as durable at present.
	Degraded() error
	// Close writes what is buffered, and an end marker.
	Close() error
}
