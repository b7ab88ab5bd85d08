package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	signals "os/signal"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	partVariable = "JOURNAL_TEST_PART"
	dirVariable  = "JOURNAL_TEST_DIR"
	// forgetVariable names a step that the journal forgets.
	forgetVariable = "JOURNAL_TEST_FORGET"
)

// playPart is what a process does that a test started: it prints what happens to it, a line each.
func playPart(part string) int {
	dir := os.Getenv(dirVariable)
	switch part {
	case "hold":
		return hold(dir)
	case "hold without room":
		signals.Ignore(unix.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}); err != nil {
			fmt.Println("failed", err)
			return 1
		}
		return hold(dir)
	case "write":
		return writeForever(dir, os.Getenv(forgetVariable))
	case "read":
		return readBack(dir)
	}
	fmt.Println("unknown part")
	return 2
}

// hold tries to become the one that writes, says how that went, and stays until its input ends.
func hold(dir string) int {
	j, err := Open(Options{Dir: dir})
	var locked *LockedError
	switch {
	case errors.As(err, &locked):
		fmt.Println("refused", locked.PID)
		return 0
	case err != nil:
		fmt.Println("failed", err)
		return 1
	}
	defer j.Close()
	fmt.Println("holds", os.Getpid())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return 0
}

// writeForever appends entries and prints each sequence and value once it is durable. It says when it is degraded, and when not any
// more.
func writeForever(dir, forget string) int {
	files, err := openDirectory(dir)
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	under := &mutation{FS: files, noSync: forget == "journals", noSnapshotSync: forget == "snapshots"}
	j, o, err := openOn(under, Limits{RotateEntries: 40})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	go func() {
		for range j.SnapshotWanted() {
			if err := j.Snapshot(o.snapshot); err != nil {
				fmt.Println("attempt", err)
			}
		}
	}()
	fmt.Println("ready", j.recovered.Sequence)
	for i := 0; ; i++ {
		value := strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(i)
		sequence, err := o.write(j, fact{keyOf(i % 50), value})
		if err == nil {
			err = j.Durable(context.Background(), sequence)
		}
		var degraded *DegradedError
		switch {
		case err == nil:
			fmt.Println("durable", sequence, keyOf(i%50), value)
		case errors.As(err, &degraded):
			fmt.Println("degraded", sequence)
			healed(j)
		default:
			fmt.Println("failed", err)
			return 1
		}
	}
}

// healed waits until the journal is not degraded any more.
func healed(j *Journal) {
	for {
		j.mu.Lock()
		degraded, changed := j.degraded, j.changed
		j.mu.Unlock()
		if degraded == nil {
			return
		}
		<-changed
	}
}

// reading is what a start finds.
type reading struct {
	Recovered Recovered
	Findings  []Finding
	Rows      map[string]row
}

// readBack recovers and prints a reading.
func readBack(dir string) int {
	j, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	o := &owner{}
	if err := j.Recover(o.restore, o.apply); err != nil {
		fmt.Println("failed", err)
		return 1
	}
	found := reading{j.recovered, j.Findings(), o.rows}
	if err := errors.Join(j.Close(), json.NewEncoder(os.Stdout).Encode(found)); err != nil {
		fmt.Println("failed", err)
		return 1
	}
	return 0
}

// process is a copy of this test that plays a part.
func process(t *testing.T, part, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), partVariable+"="+part, dirVariable+"="+dir)
	return cmd
}
