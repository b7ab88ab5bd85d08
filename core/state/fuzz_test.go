package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzEntry: no bytes make decode panic, and what it takes can be written, applied and read again.
func FuzzEntry(f *testing.F) {
	for _, e := range everything() {
		data, err := encode(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data, make(words))
		if err != nil {
			return
		}
		again, err := encode(e)
		if err != nil {
			t.Fatalf("taken, and cannot be written: %v", err)
		}
		db, twin := empty(t), empty(t)
		apply(t, db, 1, [][]byte{data})
		apply(t, twin, 1, [][]byte{again})
		if diff := cmp.Diff(dump(t, db), dump(t, twin)); diff != "" {
			t.Errorf("read again as another state:\n%s", diff)
		}
	})
}

// FuzzSnapshot: no bytes make readSnapshot panic, and what it takes can be written and read again.
func FuzzSnapshot(f *testing.F) {
	good, err := os.ReadFile(filepath.Join("testdata", "format-1", "snapshot.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, data []byte) {
		db, _, err := readSnapshot(data)
		if err != nil {
			return
		}
		again, _, err := readSnapshot([]byte(dump(t, db)))
		if err != nil {
			t.Fatalf("taken, and cannot be written: %v", err)
		}
		if diff := cmp.Diff(dump(t, db), dump(t, again)); diff != "" {
			t.Errorf("read again as another state:\n%s", diff)
		}
	})
}

// FuzzImport: whatever is imported, all of it or nothing is taken.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"format":1,"bindings":[{"session":"claude/s","model":"m","account":"a","bound_at":"2026-03-02T08:00:00Z","last_used":"2026-03-02T08:00:00Z","bound_by":"initial"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := open(t, "a")
		done, err := store.Import(bytes.NewReader(data), start)
		if err != nil && store.Stats().Bindings != 0 {
			t.Errorf("%d bindings were taken of what was refused: %v", store.Stats().Bindings, err)
		}
		if err == nil && done.Added != store.Stats().Bindings {
			t.Errorf("added %d, there are %d", done.Added, store.Stats().Bindings)
		}
		if err := store.Snapshot(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		store.recover()
	})
}
