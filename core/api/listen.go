package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/internal/owner"
)

// InUseError says that another daemon serves the control socket.
type InUseError struct {
	Socket string
	// PID of the other daemon; 0 unknown.
	PID int
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("listen on %s: another daemon is running", e.Socket)
	}
	return fmt.Sprintf("listen on %s: another daemon is running with pid %d", e.Socket, e.PID)
}

// Listen opens the control socket for this user alone: mode 0600, in a directory of mode 0700 that is made when missing. A
// socket left behind is replaced. Errors: *InUseError.
func Listen(path string) (net.Listener, error) {
	if err := owner.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// Who holds the lock owns the path. Asking whether somebody answers would leave a gap between two daemons that start.
	lock, err := holdLock(path)
	if err != nil {
		return nil, err
	}
	listener, err := listenUnix(path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &controlListener{Listener: listener, lock: lock}, nil
}

type controlListener struct {
	net.Listener
	lock *os.File
}

// Close removes the socket and gives up the path.
func (l *controlListener) Close() error {
	return errors.Join(l.Listener.Close(), l.lock.Close())
}

func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, errors.New("there is a file that is no socket; remove it")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	// The directory keeps others out until this is done.
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

func holdLock(socket string) (*os.File, error) {
	lock, err := os.OpenFile(socket+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		held := &InUseError{Socket: socket, PID: readPID(lock)}
		lock.Close()
		return nil, held
	}
	if err == nil {
		err = lock.Truncate(0)
	}
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("listen on %s: hold its lock: %w", socket, err)
	}
	return lock, nil
}

func readPID(lock *os.File) int {
	var text [16]byte
	n, _ := lock.ReadAt(text[:], 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}
