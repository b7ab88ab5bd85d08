package journal

import (
	"errors"

	"golang.org/x/sys/unix"
)

func syncData(fd int) error { return fullSync(fd) }

func syncDirectory(fd int) error { return fullSync(fd) }

// fullSync makes the drive empty its cache too, which fsync on this system does not. Where the filesystem does not know it
// (network and FAT volumes), fsync is the best there is.
func fullSync(fd int) error {
	for {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTTY):
			return unix.Fsync(fd)
		default:
			return err
		}
	}
}
