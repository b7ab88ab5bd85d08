package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/journal"
)

// overJournal is a store over files, with its goroutine.
func overJournal(t testing.TB, dir string) (f *fixture, stop func()) {
	t.Helper()
	log, err := journal.Open(journal.Options{Dir: dir, Clock: clock.Wall{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(log, Settings{})
	if err != nil {
		t.Fatal(errors.Join(err, log.Close()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.Run(ctx) })
	f = &fixture{Store: s, t: t, now: start, configs: []AccountConfig{config("a"), config("b")}}
	f.must(s.ApplyAccounts(f.configs, f.now))
	return f, func() {
		f.must(s.Close())
		cancel()
		group.Wait()
	}
}

func TestStateOverTheJournalComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	f, stop := overJournal(t, dir)
	f.read("a", 10, 10)
	f.read("b", 50, 50)
	for i := range 50 {
		attempt, _ := f.ask(fmt.Sprint("claude/", i), "m")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		f.must(f.Durable(ctx, f.accept(attempt)))
		cancel()
		f.end(attempt)
	}
	f.must(f.Snapshot())
	f.reject(f.tryAny(), weekGone)
	f.pass(2 * time.Minute)
	want := dump(t, f.db)
	stop()
	f, stop = overJournal(t, dir)
	if got := dump(t, f.db); got != want {
		t.Errorf("state came back as\n%s\nit was\n%s", got, want)
	}
	stop()
}

func TestANewerEntryLeavesTheJournalAsItIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	f, stop := overJournal(t, dir)
	f.serve("a", "claude/s", "m")
	stop()
	f = &fixture{t: t}
	log, err := journal.Open(journal.Options{Dir: dir, Clock: clock.Wall{}})
	f.must(err)
	f.Store, err = Open(log, Settings{})
	f.must(err)
	f.must(f.Snapshot())
	if _, err := f.Store.log.Append([]byte(`{"type":"lease","body":{}}`)); err != nil {
		t.Fatal(err)
	}
	f.must(f.Close())
	longAgo := time.Now().Add(-time.Hour)
	for name := range files(t, dir) {
		f.must(os.Chtimes(filepath.Join(dir, name), longAgo, longAgo))
	}
	before := files(t, dir)
	log, err = journal.Open(journal.Options{Dir: dir, Clock: clock.Wall{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(log, Settings{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error = %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	after := files(t, dir)
	delete(before, "lock")
	delete(after, "lock")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("files were changed:\n%s", diff)
	}
}

// files are all in the directory: when each was written, and what it holds.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = info.ModTime().String() + "\n" + string(data)
	}
	return all
}
