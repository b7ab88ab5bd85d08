package journal

import (
	"errors"

	"golang.org/x/sys/unix"
)

func syncData(fd int) error { return syncWith(unix.Fdatasync, fd) }

func syncDirectory(fd int) error { return syncWith(unix.Fsync, fd) }

// syncWith repeats a sync only when a signal came before it began; no other error is ever tried again.
func syncWith(sync func(int) error, fd int) error {
	for {
		if err := sync(fd); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
