package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// writing is a process that writes until it is killed, with what it says.
type writing struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when its output has ended

	mu       sync.Mutex // guards what follows
	ready    bool
	durable  []said
	degraded int
	attempts int  // to get out of it that failed
	healed   bool // something was durable after it had been degraded
	failed   string
	changed  chan struct{}
}

// said is an entry that the process acknowledged.
type said struct {
	sequence   uint64
	key, value string
}

// startWriting runs the command, which is a process with the part "write", perhaps under another program.
func startWriting(cmd *exec.Cmd) (*writing, error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &writing{cmd: cmd, done: make(chan struct{}), changed: make(chan struct{})}
	go w.listen(stdout)
	return w, nil
}

func (w *writing) listen(stdout io.Reader) {
	defer close(w.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		w.take(lines.Text())
	}
}

func (w *writing) take(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s said
	switch {
	case strings.HasPrefix(text, "ready"):
		w.ready = true
	case strings.HasPrefix(text, "degraded"):
		w.degraded++
	case strings.HasPrefix(text, "attempt"):
		w.attempts++
	case strings.HasPrefix(text, "failed"):
		w.failed = text
	default:
		if n, _ := fmt.Sscanf(text, "durable %d %s %s", &s.sequence, &s.key, &s.value); n != 3 {
			return // cut by the kill
		}
		w.durable = append(w.durable, s)
		w.healed = w.healed || w.degraded > 0
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until the condition holds, or the process ends.
func (w *writing) until(condition func() bool) bool {
	for {
		w.mu.Lock()
		holds, changed := condition(), w.changed
		w.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-w.done:
			w.mu.Lock()
			defer w.mu.Unlock()
			return condition()
		}
	}
}

// end waits for the process after something has ended it.
func (w *writing) end() {
	<-w.done
	_ = w.cmd.Wait() // it was killed, or its disk taken away
}

// ledger is what a writing process acknowledged so far: the last of each key, and the last sequence.
type ledger struct {
	rows map[string]row
	last uint64
}

func (l *ledger) add(all []said) {
	for _, s := range all {
		if l.rows == nil {
			l.rows = map[string]row{}
		}
		l.rows[s.key] = row{s.sequence, s.value}
		l.last = s.sequence
	}
}

// check compares what a start found with what had been acknowledged.
func (l *ledger) check(found reading) error {
	for key, want := range l.rows {
		got := found.Rows[key]
		if got.Sequence < want.Sequence || got.Sequence == want.Sequence && got.Value != want.Value {
			return fmt.Errorf("%s was acknowledged as %+v and is %+v", key, want, got)
		}
	}
	if found.Recovered.Sequence < l.last {
		return fmt.Errorf("acknowledged up to %d, recovered up to %d", l.last, found.Recovered.Sequence)
	}
	if found.Recovered.BadSnapshots > 0 {
		return fmt.Errorf("a snapshot was in its place before it was whole")
	}
	return nil
}

// read starts a process that recovers, and gives what it found.
func read(t *testing.T, dir string) (reading, error) {
	t.Helper()
	out, err := process(t, "read", dir).Output()
	if err != nil {
		return reading{}, fmt.Errorf("recover in another process: %w: %s", err, out)
	}
	var found reading
	return found, json.Unmarshal(out, &found)
}

func TestWhatAKilledProcessAcknowledgedIsThere(t *testing.T) {
	dir := t.TempDir() + "/state"
	var promised ledger
	for round := range processKills {
		w, err := startWriting(process(t, "write", dir))
		if err != nil {
			t.Fatal(err)
		}
		if !w.until(func() bool { return len(w.durable) > 10*(round%20) }) {
			t.Fatalf("round %d: ended by itself: %s", round, w.failed)
		}
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		w.end()
		promised.add(w.durable)
		found, err := read(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := promised.check(found); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	t.Logf("%d kills, %d entries acknowledged, 0 lost", processKills, promised.last)
}
