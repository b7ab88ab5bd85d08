//go:build fault && linux

package journal

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// traced is a line of strace -y: a call that names a file of the journal by its descriptor.
var traced = regexp.MustCompile(`(write|pwrite64|fdatasync|fsync|openat|renameat2?)\(.*?<?([^<>"]*/state(?:/[^<>"]*)?)[>"].*\)\s+= (-?\d+)(.*)`)

// TestInjectedSyncErrorsAreNeverAcknowledgedNorRetried makes the k-th sync of a real process fail in the kernel's stead.
func TestInjectedSyncErrorsAreNeverAcknowledgedNorRetried(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("this machine has no strace")
	}
	runs, healed := 0, 0
	for _, fault := range []string{"fdatasync:error=EIO", "fsync:error=EIO", "fdatasync:error=ENOSPC", "renameat:error=EIO", "pwrite64:error=ENOSPC"} {
		for k := 1; k <= 12; k++ {
			for _, many := range []string{"", "+1"} {
				dir := filepath.Join(t.TempDir(), "state")
				if injectOnce(t, dir, fmt.Sprintf("%s:when=%d%s", fault, k, many), many == "") {
					healed++
				}
				runs++
			}
		}
	}
	t.Logf("%d runs, %d of them degraded and healed by themselves, no false acknowledgement", runs, healed)
}

func injectOnce(t *testing.T, dir, fault string, mustGoOn bool) (healed bool) {
	t.Helper()
	record := filepath.Join(t.TempDir(), "strace")
	if err := os.Mkdir(dir, dirMode); err != nil {
		t.Fatal(err)
	}
	cmd := process(t, "write", dir)
	call, _, _ := strings.Cut(fault, ":")
	cmd.Args = append([]string{"strace", "-f", "-y", "-o", record, "-e", "trace=write,pwrite64,fdatasync,fsync,renameat,renameat2", "-e", "inject=" + fault}, cmd.Path)
	cmd.Path, _ = exec.LookPath("strace")
	w, err := startWriting(cmd)
	if err != nil {
		t.Fatal(err)
	}
	// An error that lasts was seen enough of after some attempts; one that does not must be survived.
	w.until(func() bool {
		return w.healed && len(w.durable) > 60 || w.attempts > 4 || len(w.durable) > 150
	})
	stop(t, w)
	if w.failed != "" {
		t.Errorf("%s: %s", fault, w.failed)
	}
	if mustGoOn && w.degraded > 0 && !w.healed {
		t.Errorf("%s: degraded and never healed", fault)
	}
	checkNeverRetried(t, record, fault, call)
	var promised ledger
	promised.add(w.durable)
	found, err := read(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := promised.check(found); err != nil {
		t.Errorf("%s: %v", fault, err)
	}
	return w.healed
}

// stop ends the traced process and the tracer with it.
func stop(t *testing.T, w *writing) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", w.cmd.Process.Pid, w.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(children)) {
		var child int
		if _, err := fmt.Sscan(pid, &child); err != nil {
			t.Fatal(err)
		}
		if p, err := os.FindProcess(child); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
	w.end()
}

// checkNeverRetried looks for a write or sync of a journal after one of its syncs had failed.
func checkNeverRetried(t *testing.T, record, fault, call string) {
	t.Helper()
	file, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	failed := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := traced.FindStringSubmatch(lines.Text())
		if m == nil || !strings.Contains(m[2], "/"+journalPrefix) {
			continue
		}
		if failed[m[2]] {
			t.Errorf("%s: used after its sync had failed: %s", fault, lines.Text())
			return
		}
		if m[1] == "fdatasync" && m[3] == "-1" {
			failed[m[2]] = true
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if call == "fdatasync" && len(failed) == 0 && strings.Contains(fault, "when=1") {
		t.Logf("%s: hit no journal", fault)
	}
}
