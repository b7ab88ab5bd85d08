package journal

import (
	"errors"
	"io"
	"io/fs"
)

// FS is the directory a journal lives in: a flat set of files. Tests put another one under the journal to crash it at every
// operation. Its methods are called by one goroutine at a time; files are used beside them.
type FS interface {
	// Lock makes this process the only one that writes, until Close, or returns a *LockedError. When it is called again,
	// after a write error, it makes sure that the locked directory is still the one at its path, and starts over with the
	// one that is there now otherwise.
	Lock() error
	// List returns the names of all files.
	List() ([]string, error)
	// Read returns at most limit bytes from the beginning of the file, and the file's length. A file that is not regular,
	// not ours, open to others or linked twice is an *UnsafeError.
	Read(name string, limit int64) (content []byte, length int64, err error)
	// Create makes a file that does not exist.
	Create(name string) (File, error)
	// Rename gives a file another name, replacing what has it.
	Rename(from, to string) error
	// Remove removes a name.
	Remove(name string) error
	// Sync returns once all changes of names are on stable storage.
	Sync() error
	// Close gives up the lock.
	Close() error
}

// File is a file that is being written.
type File interface {
	io.Writer
	io.WriterAt
	// Sync returns once all that was written is on stable storage.
	Sync() error
	// Linked returns an error when the file is not at its path any more.
	Linked() error
	Close() error
}

// createAnew makes a file, in place of one of that name if there is one.
func createAnew(dir FS, name string) (File, error) {
	file, err := dir.Create(name)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if err := dir.Remove(name); err != nil {
		return nil, err
	}
	return dir.Create(name)
}
