//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
	others   = 0o077
)

// directory is the FS of a real directory. Names are resolved against its descriptor, and no symbolic link is followed.
type directory struct {
	path string

	mu   sync.Mutex // guards what follows; Lock may replace it
	fd   int
	lock *lockFile // nil before Lock
}

// openDirectory opens the directory at path, making it when it is not there.
func openDirectory(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open state directory: %w", err)
	}
	fd, err := openDirectoryAt(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirectory(path); err != nil {
			return nil, err
		}
		fd, err = openDirectoryAt(path)
	}
	if err != nil {
		return nil, err
	}
	return &directory{path: path, fd: fd}, nil
}

func openDirectoryAt(path string) (int, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return -1, &UnsafeError{Path: path, Problem: "it is not a directory, or a symbolic link to one", Remedy: "set the state directory to a real directory of your own"}
	case err != nil:
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return -1, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if int(stat.Uid) != os.Geteuid() {
		unix.Close(fd)
		return -1, &UnsafeError{Path: path, Problem: fmt.Sprintf("it belongs to user %d", stat.Uid), Remedy: "set the state directory to a directory of your own"}
	}
	if stat.Mode&others != 0 {
		unix.Close(fd)
		return -1, &UnsafeError{Path: path, Problem: fmt.Sprintf("others have access to it (mode %04o)", stat.Mode&0o7777), Remedy: "look at what is in it, then chmod 700 " + path}
	}
	return fd, nil
}

// makeDirectory makes the directory and its missing parents, each of them on stable storage: files in a directory that a power
// cut takes away are lost with it.
func makeDirectory(path string) error {
	var missing []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		missing = append(missing, p)
	}
	for _, p := range slices.Backward(missing) {
		if err := os.Mkdir(p, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make state directory: %w", err)
		}
		if err := syncPath(filepath.Dir(p)); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
	}
	return nil
}

func syncPath(path string) error {
	fd, err := retryEINTR(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := syncDirectory(fd); err != nil {
		return &fs.PathError{Op: "sync", Path: path, Err: err}
	}
	return nil
}

func (d *directory) current() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fd
}

func (d *directory) Lock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil && d.lock.holds(d.path) {
		d.lock.name()
		return nil
	}
	fd, err := openDirectoryAt(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDirectory(d.path); err != nil {
			return err
		}
		fd, err = openDirectoryAt(d.path)
	}
	if err != nil {
		return err
	}
	lock, err := takeLock(fd, d.path)
	if err != nil {
		unix.Close(fd)
		return err
	}
	if d.lock != nil {
		d.lock.release()
	}
	unix.Close(d.fd)
	d.fd, d.lock = fd, lock
	return nil
}

func (d *directory) List() ([]string, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(d.current(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), d.path)
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (d *directory) Read(name string, limit int64) ([]byte, int64, error) {
	fd, length, err := d.openChecked(name)
	if err != nil {
		return nil, 0, err
	}
	defer unix.Close(fd)
	content := make([]byte, min(length, limit))
	if err := readSkipping(fd, content); err != nil {
		return nil, 0, &fs.PathError{Op: "read", Path: d.join(name), Err: err}
	}
	return content, length, nil
}

// readBlock is the unit that is given up when the disk cannot read it.
const readBlock = 4096

// readSkipping fills content from the beginning of the file. A block that the disk cannot read stays zero: its lines fail their
// checksums, and the others are still good.
func readSkipping(fd int, content []byte) error {
	for offset := 0; offset < len(content); {
		n, err := retryEINTR(func() (int, error) {
			return unix.Pread(fd, content[offset:min(offset+256*readBlock, len(content))], int64(offset))
		})
		if errors.Is(err, unix.EIO) {
			n, err = readBlocks(fd, content, offset)
		}
		if err != nil {
			return err
		}
		if n == 0 { // shorter than it was; the rest stays zero
			return nil
		}
		offset += n
	}
	return nil
}

// readBlocks reads the blocks of a stretch that failed as a whole one by one.
func readBlocks(fd int, content []byte, offset int) (int, error) {
	end := min(offset+256*readBlock, len(content))
	for at := offset; at < end; at += readBlock {
		block := content[at:min(at+readBlock, end)]
		_, err := retryEINTR(func() (int, error) { return unix.Pread(fd, block, int64(at)) })
		if errors.Is(err, unix.EIO) {
			clear(block)
			continue
		}
		if err != nil {
			return 0, err
		}
	}
	return end - offset, nil
}

// openChecked opens a file for reading once it is known to be a regular file of ours that nobody else can reach. It is looked at
// before it is opened too, because opening a device can have an effect.
func (d *directory) openChecked(name string) (fd int, length int64, err error) {
	dir := d.current()
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return -1, 0, &fs.PathError{Op: "stat", Path: d.join(name), Err: err}
	}
	if err := checkFile(d.join(name), &stat); err != nil {
		return -1, 0, err
	}
	fd, err = retryEINTR(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, 0, &fs.PathError{Op: "open", Path: d.join(name), Err: err}
	}
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return -1, 0, &fs.PathError{Op: "stat", Path: d.join(name), Err: err}
	}
	if err := checkFile(d.join(name), &stat); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, stat.Size, nil
}

func checkFile(path string, stat *unix.Stat_t) error {
	unsafe := func(remedy, problem string, args ...any) error {
		return &UnsafeError{Path: path, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return unsafe("find out who put it there, then remove it", "it is not a regular file")
	case int(stat.Uid) != os.Geteuid():
		return unsafe("find out who put it there, then remove it", "it belongs to user %d", stat.Uid)
	case stat.Mode&others != 0:
		return unsafe("if you trust what is in it, chmod 600", "others have access to it (mode %04o)", stat.Mode&0o7777)
	case stat.Nlink != 1:
		return unsafe("remove the other links", "it has %d links", stat.Nlink)
	}
	return nil
}

func (d *directory) Create(name string) (File, error) {
	fd, err := retryEINTR(func() (int, error) {
		return unix.Openat(d.current(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: d.join(name), Err: err}
	}
	return &regularFile{File: os.NewFile(uintptr(fd), d.join(name)), dir: d}, nil
}

func (d *directory) Rename(from, to string) error {
	fd := d.current()
	if err := unix.Renameat(fd, from, fd, to); err != nil {
		return &fs.PathError{Op: "rename", Path: d.join(from), Err: err}
	}
	return nil
}

func (d *directory) Remove(name string) error {
	if err := unix.Unlinkat(d.current(), name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: d.join(name), Err: err}
	}
	return nil
}

func (d *directory) Sync() error {
	if err := syncDirectory(d.current()); err != nil {
		return &fs.PathError{Op: "sync", Path: d.path, Err: err}
	}
	return nil
}

func (d *directory) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil {
		d.lock.release()
		d.lock = nil
	}
	if d.fd < 0 {
		return nil
	}
	err := unix.Close(d.fd)
	d.fd = -1
	return err
}

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// regularFile is a File on a real disk.
type regularFile struct {
	*os.File
	dir *directory
}

// Sync waits for the data and the length; times do not matter.
func (f *regularFile) Sync() error {
	if err := syncData(int(f.Fd())); err != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return nil
}

// Linked compares the file and the lock with what is at their paths. Writing to a file that was removed, or whose directory was
// moved away, succeeds, and would be found by nobody.
func (f *regularFile) Linked() error {
	var here, there unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &here); err != nil {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	err := unix.Lstat(f.Name(), &there)
	if errors.Is(err, unix.ENOENT) || err == nil && identityOf(&here) != identityOf(&there) || !f.dir.locked() {
		return fmt.Errorf("check %s: %w", f.Name(), errUnlinked)
	}
	if err != nil {
		return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return nil
}

// locked tells whether the lock that was taken is still the one at the path.
func (d *directory) locked() bool {
	d.mu.Lock()
	lock := d.lock
	d.mu.Unlock()
	return lock != nil && lock.holds(d.path)
}

func retryEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
