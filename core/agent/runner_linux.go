package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// processStart names the moment at which the process with that id began: the machine's start and the ticks since then.
// Error: errProcessEnded, also for a zombie.
func processStart(pid int) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return "", errProcessEnded
	}
	if err != nil {
		return "", err
	}
	// The name of the program stands in parentheses and may hold any of its own. Behind it the state is the first field and the
	// start the 20th: the third and the 22nd of proc(5).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, start = 0, 19
	switch {
	case len(fields) <= start:
		return "", fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(fields))
	case fields[state] == "Z", fields[state] == "X":
		return "", errProcessEnded
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[start], nil
}
