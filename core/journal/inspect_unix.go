//go:build unix

package journal

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Inspect looks at a state directory as a start would, and changes nothing; restore and apply are as for Recover. It takes no lock,
// so the findings about a directory that a daemon writes in may be out of date at once: ask the daemon then. A *NewerFormatError or
// *UnsafeError is why a start would fail.
func Inspect(dir string, restore, apply func(sequence uint64, body []byte) error) (Recovered, []Finding, error) {
	fd, err := openDirectoryAt(dir)
	if err != nil {
		return Recovered{}, nil, err
	}
	defer unix.Close(fd)
	files := &directory{path: dir, fd: fd}
	if err := checkFormats(files); err != nil {
		return Recovered{}, nil, err
	}
	r := &recovery{fs: files, limit: Limits{}.withDefaults().readable(), restore: restore, apply: apply}
	if err := r.run(); err != nil {
		return Recovered{}, nil, fmt.Errorf("inspect journal: %w", err)
	}
	return r.Recovered, r.findings.all(), nil
}
