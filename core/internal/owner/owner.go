// Package owner says whose a file is: everything that is to be the user's alone is checked in the same way.
package owner

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Of is the user id of the owner, -1 when there is none.
func Of(info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}

// Ours reports whether a file belongs to the user as whom this process acts.
func Ours(info fs.FileInfo) bool { return Of(info) == os.Geteuid() }

// MakePrivate makes a directory that is missing. It is an error when it is not one of ours alone, or a link.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("examine directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("use directory %s: it is no directory", dir)
	case !Ours(info):
		return fmt.Errorf("use directory %s: it belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("use directory %s: it is open to others; run chmod 700 on it", dir)
	}
	return nil
}
