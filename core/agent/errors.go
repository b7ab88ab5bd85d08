package agent

import (
	"errors"

	"github.com/noria-dev/noria/core/config"
)

// Exit codes of noria serve.
const (
	exitDone   = 0
	exitFailed = 1
	exitConfig = 78
)

// RefusedStartError is why a daemon does not start before a person has put something right: an address, a directory, a file,
// another daemon.
type RefusedStartError struct {
	Err error
	// Remedy says what to do.
	Remedy string
}

func (e *RefusedStartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedStartError) Unwrap() error { return e.Err }

// refuseStart gives an error its remedy; nil stays nil.
func refuseStart(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &RefusedStartError{Err: err, Remedy: remedy}
}

// ExitCode of an error of Run: 0 without one, 78 when the configuration, or what a *RefusedStartError names, must be put
// right first, 1 for all else.
func ExitCode(err error) int {
	var (
		diags   config.Diagnostics
		refused *RefusedStartError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &diags), errors.As(err, &refused):
		return exitConfig
	}
	return exitFailed
}
