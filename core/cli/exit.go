package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/noria-dev/noria/core/agent"
	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/internal/ansi"
	"github.com/noria-dev/noria/core/internal/printable"
)

// Exit codes. They are part of what scripts may rely on.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2  // wrong arguments, and plugins list -strict
	exitBlocked    = 3  // nobody can serve, and there is a forecast
	exitRefused    = 4  // the daemon refused the operation
	exitNotRunning = 69 // no daemon
	exitConfig     = 78 // configuration, address or state directory
)

// usageError is an error in the arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...)}
}

// exitError ends a command that has said everything already.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// report prints an error with its remedy and returns its exit code.
func (c *command) report(err error) int {
	var (
		usage   *usageError
		quiet   *exitError
		refused *api.Error
		start   *agent.RefusedStartError
		found   config.Diagnostics
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return quiet.code
	case errors.As(err, &usage):
		c.complain(usage.text, fmt.Sprintf("see %q", "noria "+c.name+" -help"))
		return exitUsage
	case errors.As(err, &found):
		if c.json {
			if err := c.printJSON(found.Sorted()); err != nil {
				return exitFailed
			}
		} else if err := found.Write(c.program.Stderr, c.colourOn(c.program.Stderr)); err != nil {
			return exitFailed
		}
		return exitConfig
	case errors.Is(err, api.ErrNotRunning):
		c.complain(err.Error(), `start it with "noria serve", or name its configuration with -config`)
		return exitNotRunning
	case errors.As(err, &refused):
		c.complain(refused.Message, refused.Remedy)
		return exitCodeOf(refused.Code)
	case errors.As(err, &start):
		c.complain(start.Error(), start.Remedy)
		return exitConfig
	case errors.Is(err, context.Canceled):
		return exitFailed
	case errors.Is(err, exec.ErrNotFound):
		c.complain(err.Error(), "install it, or put it into PATH")
		return exitFailed
	}
	c.complain(err.Error(), "")
	return exitFailed
}

func exitCodeOf(code api.Code) int {
	switch code {
	case api.CodeInvalid, api.CodeAmbiguous:
		return exitUsage
	case api.CodeRefused:
		return exitRefused
	}
	return exitFailed
}

func (c *command) complain(message, remedy string) {
	c.errorf("%s: %s\n", c.style(c.program.Stderr, ansi.Error, "Error"), printable.Text(message))
	if remedy != "" {
		c.errorf("  %s\n", printable.Text(remedy))
	}
}

// errorf prints on standard error. When that cannot be written there is nobody to tell.
func (c *command) errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.program.Stderr, format, args...)
}
