package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

func TestASecondDaemonIsRefusedWithThePIDOfTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	openIn(t, dir, quick())
	start := time.Now()
	_, err := Open(Options{Dir: dir})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("second open: %v", err)
	}
	t.Logf("refused after %v", time.Since(start))
}

// contender is a process that wants to be the one that writes.
type contender struct {
	word  string // holds or refused
	pid   int    // of the one that holds the lock, as this one says
	stdin io.Closer
	wait  func() error
}

func contend(t *testing.T, part, dir string) (*contender, error) {
	cmd := process(t, part, dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &contender{stdin: stdin, wait: cmd.Wait}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(said, &c.word, &c.pid); err != nil {
		return nil, fmt.Errorf("%q: %w", said, err)
	}
	return c, nil
}

// TestOfTwoDaemonsAtOnceNeverTwoWrite starts two processes at the same moment, time and again, on the lock that the ones before left.
func TestOfTwoDaemonsAtOnceNeverTwoWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range contests {
		var both [2]*contender
		var starting errgroup.Group
		for i := range both {
			starting.Go(func() (err error) { both[i], err = contend(t, "hold", dir); return err })
		}
		if err := starting.Wait(); err != nil {
			t.Fatal(err)
		}
		one, two := both[0], both[1]
		if one.word == "refused" {
			one, two = two, one
		}
		if one.word != "holds" || two.word != "refused" || one.pid != two.pid {
			t.Errorf("one %s (%d), the other %s (%d)", one.word, one.pid, two.word, two.pid)
		}
		for _, c := range []*contender{one, two} {
			if err := errors.Join(c.stdin.Close(), c.wait()); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestTheLockHoldsWhereNothingCanBeWritten takes a process that may write no byte, as on a full disk.
func TestTheLockHoldsWhereNothingCanBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first, err := contend(t, "hold without room", dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.word != "holds" {
		t.Errorf("it %s", first.word)
	}
	second, err := Open(Options{Dir: dir})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != 0 {
		t.Errorf("the second got %v", err)
	}
	if err == nil {
		err = second.Close()
		t.Error("closed with", err)
	}
	if err := errors.Join(first.stdin.Close(), first.wait()); err != nil {
		t.Error(err)
	}
}

func TestALockLeftByAKilledDaemonIsFree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd := process(t, "hold", dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	j, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestALockThatWasRemovedIsNotShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, o := openQuietly(t, dir)
	mustBeDurable(t, j, mustWrite(t, j, o, "a", "1"))
	if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	// Whoever comes now gets a lock of their own, so the first must stop.
	other, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := j.Durable(t.Context(), mustWrite(t, j, o, "a", "2")); !errors.Is(err, errUnlinked) {
		t.Errorf("acknowledged beside another: %v", err)
	}
	var locked *LockedError
	if err := j.Snapshot(o.snapshot); !errors.As(err, &locked) {
		t.Errorf("went on beside another: %v", err)
	}
	if err := j.Close(); err == nil {
		t.Error("closed degraded without an error")
	}
}
