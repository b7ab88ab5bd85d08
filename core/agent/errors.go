package agent

import (
	"errors"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/journal"
)

// Exit codes of noria serve.
const (
	exitDone   = 0
	exitFailed = 1
	exitConfig = 78
)

// ExitCode of an error of Run: 0 without one, 78 when the configuration, the address or the state directory must be put
// right first, 1 for all else.
func ExitCode(err error) int {
	var (
		diags  config.Diagnostics
		taken  *AddressInUseError
		locked *journal.LockedError
		newer  *journal.NewerFormatError
		socket *api.InUseError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &diags), errors.As(err, &taken), errors.As(err, &locked), errors.As(err, &newer), errors.As(err, &socket):
		return exitConfig
	}
	return exitFailed
}
