//go:build !linux

package sdk

import "syscall"

// clientAttributes give a client a process group of its own.
func clientAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
