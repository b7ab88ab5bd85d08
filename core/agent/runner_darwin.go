package agent

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// processStart names the moment at which the process with that id began. Error: errProcessEnded, also for a zombie.
func processStart(pid int) (string, error) {
	const zombie = 5 // SZOMB of sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ESRCH): // an empty answer is EIO
		return "", errProcessEnded
	case err != nil:
		return "", err
	case info.Proc.P_stat == zombie:
		return "", errProcessEnded
	}
	return fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec), nil
}
