package sdk

import (
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// parentPoll is how often the parent is looked for. The pipe is faster; the poll is for daemons that are killed while
// something else holds the pipe's other end.
const parentPoll = 500 * time.Millisecond

// watchParent returns a channel that says when the daemon is gone: its pipe ended, or its process did. Both may be unknown;
// then it never says so. The goroutines last as long as the process.
func watchParent(pipe *os.File, parent string) <-chan struct{} {
	gone := make(chan struct{}, 2)
	if pipe != nil {
		go func() {
			_, _ = io.Copy(io.Discard, pipe)
			gone <- struct{}{}
		}()
	}
	if pid, err := strconv.Atoi(parent); err == nil && pid > 1 {
		go func() {
			direct := os.Getppid() == pid
			for alive(pid, direct) {
				time.Sleep(parentPoll)
			}
			gone <- struct{}{}
		}()
	}
	return gone
}

// alive reports whether the daemon still runs. As a direct parent it is known by the parent's id, which cannot be reused;
// else, behind a wrapper, by its process id.
func alive(pid int, direct bool) bool {
	if direct {
		return os.Getppid() == pid
	}
	return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}
