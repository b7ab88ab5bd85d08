package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"
)

// owner is the simplest user of a journal: values by key, each with the sequence that wrote it.
type owner struct {
	mu     sync.Mutex // guards rows and last
	rows   map[string]row
	last   uint64
	order  []uint64 // sequences in the order in which they were applied
	refuse func(sequence uint64) error
}

type row struct {
	Sequence uint64 `json:"sequence"`
	Value    string `json:"value"`
}

type fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (o *owner) restore(sequence uint64, body []byte) error {
	rows := map[string]row{}
	if err := json.Unmarshal(body, &rows); err != nil {
		return err
	}
	o.rows, o.last = rows, sequence
	return nil
}

func (o *owner) apply(sequence uint64, entry []byte) error {
	if o.refuse != nil {
		if err := o.refuse(sequence); err != nil {
			return err
		}
	}
	var f fact
	if err := json.Unmarshal(entry, &f); err != nil {
		return err
	}
	o.order = append(o.order, sequence)
	o.set(sequence, f)
	return nil
}

func (o *owner) set(sequence uint64, f fact) {
	if o.rows == nil {
		o.rows = map[string]row{}
	}
	if o.rows[f.Key].Sequence < sequence {
		o.rows[f.Key] = row{sequence, f.Value}
	}
	o.last = sequence
}

// write appends a fact and applies it, as one step.
func (o *owner) write(j *Journal, f fact) (uint64, error) {
	entry, err := json.Marshal(f)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	sequence, err := j.Append(entry)
	if err != nil {
		return 0, err
	}
	o.set(sequence, f)
	return sequence, nil
}

func (o *owner) snapshot(w io.Writer) (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last, json.NewEncoder(w).Encode(o.rows)
}

// serve answers SnapshotWanted until ctx ends.
func (o *owner) serve(ctx context.Context, j *Journal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.SnapshotWanted():
			_ = j.Snapshot(o.snapshot)
		}
	}
}

// answer makes a snapshot if one is wanted.
func (o *owner) answer(j *Journal) {
	select {
	case <-j.SnapshotWanted():
		_ = j.Snapshot(o.snapshot)
	default:
	}
}

// quick are limits for tests: pauses that are as good as none.
func quick() Limits { return Limits{RetryMin: time.Microsecond, RetryMax: time.Microsecond} }

// openOn opens and recovers a journal on the disk.
func openOn(dir FS, limits Limits) (*Journal, *owner, error) {
	j, err := Open(Options{FS: dir, Limits: limits})
	if err != nil {
		return nil, nil, err
	}
	o := &owner{}
	if err := j.Recover(o.restore, o.apply); err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return j, o, nil
}

// openIn opens and recovers a journal in a real directory, with an owner that answers its wishes, and closes it with the test.
func openIn(t testing.TB, dir string, limits Limits) (*Journal, *owner) {
	t.Helper()
	j, o := openOnly(t, dir, limits)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.serve(ctx, j) }()
	t.Cleanup(func() { stop(); <-done })
	return j, o
}

// openQuietly is openIn with an owner that answers the first wish, and then none by itself. What is durable after this was synced with
// its journal, not with a snapshot that came first.
func openQuietly(t testing.TB, dir string) (*Journal, *owner) {
	t.Helper()
	j, o := openOnly(t, dir, quick())
	o.answer(j)
	return j, o
}

func openOnly(t testing.TB, dir string, limits Limits) (*Journal, *owner) {
	t.Helper()
	j, err := Open(Options{Dir: dir, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{}
	if err := j.Recover(o.restore, o.apply); err != nil {
		t.Fatal(err, j.Close())
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return j, o
}

func mustWrite(t testing.TB, j *Journal, o *owner, key, value string) uint64 {
	t.Helper()
	sequence, err := o.write(j, fact{key, value})
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

func mustBeDurable(t testing.TB, j *Journal, sequence uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := j.Durable(ctx, sequence); err != nil {
		t.Fatalf("wait for %d: %v", sequence, err)
	}
}

func keyOf(i int) string { return fmt.Sprintf("session-%d", i) }

// refusal is an owner that refuses the first snapshots it is given.
type refusal struct {
	*owner
	left int
	err  error
}

func (r *refusal) restore(sequence uint64, body []byte) error {
	if r.left > 0 {
		r.left--
		if r.err != nil {
			return r.err
		}
		return errors.New("binding to two accounts")
	}
	return r.owner.restore(sequence, body)
}

// witness is an owner that notes the snapshots it is shown and refuses all of them.
type witness struct{ bodies [][]byte }

func (w *witness) restore(_ uint64, body []byte) error {
	w.bodies = append(w.bodies, body)
	return errors.New("not today")
}

func (w *witness) apply(uint64, []byte) error { return nil }
