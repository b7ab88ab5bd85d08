//go:build !linux

package sdk

import "golang.org/x/sys/unix"

// protectMemory keeps leases out of core dumps.
func protectMemory() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
