package plugin

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttributes give a child its own process group. That it dies with the daemon is left to the SDK, which watches
// its standard input.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the process has ended, before it is reaped. There is no waiting without reaping here, so it
// looks whether the process is a zombie.
func awaitExit(pid int) {
	const poll, zombie = 50 * time.Millisecond, 5 // SZOMB of sys/proc.h
	for {
		info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
		if err != nil || info.Proc.P_stat == zombie {
			return
		}
		time.Sleep(poll)
	}
}

// killEscaped: the environment of other processes cannot be read here, so one that leaves its group stays.
func killEscaped(string) {}
