package journal

import (
	"errors"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

func levelOf(f Finding) hclog.Level {
	switch f.Level {
	case Note:
		return hclog.Info
	case Warning:
		return hclog.Warn
	}
	return hclog.Error
}

// writesFail tells whether the error means that nothing can be written at present, to whoever tries.
func writesFail(err error) bool {
	for _, errno := range []error{unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOSPC, unix.EDQUOT, unix.EIO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
