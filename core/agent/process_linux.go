package agent

import "golang.org/x/sys/unix"

// protectMemory keeps leases out of core dumps and out of reach of other processes of the same user.
func protectMemory() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
