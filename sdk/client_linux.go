package sdk

import "syscall"

// clientAttributes give a client a process group of its own, and a signal to leave when this process is killed: nobody
// would end it then.
func clientAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
