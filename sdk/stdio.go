package sdk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/sdk/wire"
)

// stdio holds the standard streams that the daemon gave, after the adapter lost access to them.
type stdio struct {
	// handshake is the real standard output.
	handshake *os.File
	// parentPipe is the real standard input, when it ends with the daemon; else nil.
	parentPipe *os.File
}

// claimStdio takes the standard output away, by descriptor and not only by name, so that neither os.Stdout nor a child
// process nor C code can damage the handshake: what they write goes to standard error. Standard input becomes empty.
func claimStdio() (stdio, error) {
	handshake, err := duplicate(unix.Stdout, "handshake")
	if err != nil {
		return stdio{}, err
	}
	if err := unix.Dup2(unix.Stderr, unix.Stdout); err != nil {
		return stdio{}, fmt.Errorf("redirect standard output: %w", err)
	}
	if os.Getenv(wire.EnvStdinPipe) != "1" {
		return stdio{handshake: handshake}, nil
	}
	pipe, err := duplicate(unix.Stdin, "parent")
	if err != nil {
		return stdio{}, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return stdio{}, err
	}
	defer null.Close()
	if err := unix.Dup2(int(null.Fd()), unix.Stdin); err != nil {
		return stdio{}, fmt.Errorf("redirect standard input: %w", err)
	}
	return stdio{handshake: handshake, parentPipe: pipe}, nil
}

// duplicate gives a copy that children do not inherit.
func duplicate(descriptor int, name string) (*os.File, error) {
	copied, err := unix.FcntlInt(uintptr(descriptor), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor %d: %w", descriptor, err)
	}
	return os.NewFile(uintptr(copied), name), nil
}
