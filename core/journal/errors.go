package journal

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrClosed says that the journal was closed.
	ErrClosed = errors.New("journal closed")
	// ErrNotRecovered says that the journal accepts nothing before Recover has returned.
	ErrNotRecovered = errors.New("journal not recovered")
	// ErrEntryRefused says that an entry is not one JSON object on one line of bounded length.
	ErrEntryRefused = errors.New("entry refused")

	errUsedUp     = errors.New("the numbers are used up")
	errStalled    = errors.New("the disk has not answered in time")
	errBehind     = errors.New("the disk is too slow for what is appended")
	errFull       = errors.New("the journal is at its bound and no snapshot could be written")
	errUnlinked   = errors.New("the file, or the lock, is no longer in the state directory")
	errSuperseded = errors.New("a write error came in between")
)

// LockedError says that another process writes in the directory.
type LockedError struct {
	Path string
	// PID is the holder's process id, 0 when it has not written it.
	PID int
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("lock %s: another process holds it", e.Path)
	}
	return fmt.Sprintf("lock %s: process %d holds it", e.Path, e.PID)
}

// UnsafeError says that a file or directory is not what this package may open.
type UnsafeError struct {
	Path    string
	Problem string
	// Remedy is what a person can do about it.
	Remedy string
}

func (e *UnsafeError) Error() string { return fmt.Sprintf("open %s: %s", e.Path, e.Problem) }

// NewerFormatError says that a newer release wrote a file. errors.Is(err, errors.ErrUnsupported) holds.
type NewerFormatError struct {
	File string
	// Format is the file's format, or 0 when the file is ours and what it holds is newer.
	Format uint64
	// Cause is the owner's refusal, nil when the file itself is newer.
	Cause error
}

func (e *NewerFormatError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("read %s: %v", e.File, e.Cause)
	}
	return fmt.Sprintf("read %s: its format %d is newer than %d: a newer release wrote it", e.File, e.Format, Format)
}

// Unwrap returns the owner's refusal.
func (e *NewerFormatError) Unwrap() error { return e.Cause }

// Is makes every NewerFormatError an errors.ErrUnsupported.
func (e *NewerFormatError) Is(target error) bool { return target == errors.ErrUnsupported }

// DegradedError says since when and why nothing is acknowledged as durable.
type DegradedError struct {
	Since time.Time
	Cause error
}

func (e *DegradedError) Error() string {
	return fmt.Sprintf("journal degraded since %s: %v", e.Since.Format(time.RFC3339), e.Cause)
}

// Unwrap returns the write error.
func (e *DegradedError) Unwrap() error { return e.Cause }

// writesFail tells whether the error means that nothing can be written at present, to whoever tries.
func writesFail(err error) bool {
	for _, errno := range []error{unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOSPC, unix.EDQUOT, unix.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
