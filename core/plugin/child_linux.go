package plugin

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes give a child its own process group and have the kernel kill it when the daemon's spawning thread ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has ended, before it is reaped: until then its group cannot be another one's.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// killEscaped kills processes that left their group, known by the mark in the environment they inherited. It cannot
// read that of processes which protect their memory, and those that drop the mark are not found. A process that forks or
// executes while it is looked for can be missed, so it looks until it finds nothing twice in a row.
func killEscaped(mark string) {
	const most = 20
	for clean, pass := 0, 0; clean < 2 && pass < most; pass++ {
		if clean++; killMarked(mark) {
			clean = 0
		}
	}
}

// killMarked makes one pass, and reports whether it found any.
func killMarked(mark string) (found bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && hasEntry(environ, mark) {
			found = unix.Kill(pid, unix.SIGKILL) == nil || found
		}
	}
	return found
}

func hasEntry(environ []byte, entry string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == entry {
			return true
		}
	}
	return false
}
