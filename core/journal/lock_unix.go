//go:build unix

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockName = "lock"
	// A holder writes its process id right after it has the lock; who is refused waits a moment for it.
	pidWait  = 10 * time.Millisecond
	pidTries = 30

	lockTries = 10
)

// lockFile is the lock of a directory. The kernel gives it up with the descriptor, so a killed holder leaves none behind.
type lockFile struct {
	file      *os.File
	dir, self identity
	named     bool // our process id is in it
}

// identity tells files apart whatever they are called.
type identity struct{ dev, ino uint64 }

func identityOf(stat *unix.Stat_t) identity {
	return identity{dev: uint64(stat.Dev), ino: stat.Ino} //nolint:unconvert // the type differs by system
}

// takeLock takes the lock in the directory, or returns a *LockedError. A lock file that is not safe is an *UnsafeError: moving it
// out of the way could let a second writer in.
func takeLock(dir int, path string) (*lockFile, error) {
	for range lockTries {
		lock, err := openLock(dir, path)
		if err != nil {
			return nil, err
		}
		err = flock(int(lock.file.Fd()))
		if errors.Is(err, unix.EWOULDBLOCK) {
			pid := waitForPID(lock.file)
			lock.file.Close()
			return nil, &LockedError{Path: path, PID: pid}
		}
		if err != nil {
			lock.file.Close()
			return nil, &fs.PathError{Op: "lock", Path: lock.file.Name(), Err: err}
		}
		if !lock.holds(path) { // removed or replaced between open and flock
			lock.file.Close()
			continue
		}
		lock.name()
		return lock, nil
	}
	return nil, fmt.Errorf("lock %s: the directory changes while it is being locked", path)
}

func openLock(dir int, path string) (*lockFile, error) {
	name := filepath.Join(path, lockName)
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(dir, lockName, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, fileMode)
	})
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, &UnsafeError{Path: name, Problem: "it is not a regular file", Remedy: "find out who put it there, then remove it while no daemon runs"}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	var self, parent unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &self), unix.Fstat(dir, &parent))
	if err == nil {
		err = checkLock(name, &self)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &lockFile{file: file, dir: identityOf(&parent), self: identityOf(&self)}, nil
}

// checkLock lets a lock pass that was removed since it was opened: the comparison of identities sees to that.
func checkLock(name string, stat *unix.Stat_t) error {
	checked := *stat
	checked.Nlink = max(checked.Nlink, 1)
	return checkFile(name, &checked)
}

func flock(fd int) error {
	_, err := retryEINTR(func() (int, error) { return 0, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	return err
}

// holds tells whether the directory and the lock at the path are the ones that were locked.
func (l *lockFile) holds(path string) bool {
	var dir, self unix.Stat_t
	return unix.Lstat(path, &dir) == nil && identityOf(&dir) == l.dir &&
		unix.Lstat(filepath.Join(path, lockName), &self) == nil && identityOf(&self) == l.self
}

// name puts our process id into the file, unless it is there. On a full disk it is not: the lock holds without it.
func (l *lockFile) name() {
	if l.named || l.file.Truncate(0) != nil {
		return
	}
	_, err := l.file.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	l.named = err == nil
}

// release empties the file first, so that nobody reads the id of a process that is gone.
func (l *lockFile) release() {
	_ = l.file.Truncate(0)
	l.file.Close()
}

// waitForPID reads the holder's process id. A holder that was killed leaves its id behind until the next one writes its own, so
// the id of a process that does not exist is not believed.
func waitForPID(file *os.File) int {
	for range pidTries {
		if pid := readPID(file); pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return pid
		}
		time.Sleep(pidWait)
	}
	return 0
}

func readPID(file *os.File) int {
	text := make([]byte, 20)
	n, _ := file.ReadAt(text, 0)
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}
