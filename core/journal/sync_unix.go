//go:build unix && !linux && !darwin

package journal

import "golang.org/x/sys/unix"

func syncData(fd int) error { return unix.Fsync(fd) }

func syncDirectory(fd int) error { return unix.Fsync(fd) }
