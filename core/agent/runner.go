package agent

import (
	"errors"
	"fmt"
)

// runner is the process that a run's key was made for. A process id alone does not name one for long: the same number is
// given to another process later, and after the machine was started anew.
type runner struct {
	PID int `json:"pid"`
	// Started tells processes of one number apart, over restarts of the machine as well.
	Started string `json:"started"`
}

var errProcessEnded = errors.New("the process has ended")

func runnerOf(pid int) (runner, error) {
	if pid <= 0 {
		return runner{}, errors.New("look at process: the system does not tell which it is")
	}
	started, err := processStart(pid)
	if err != nil {
		return runner{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return runner{PID: pid, Started: started}, nil
}

// ended is true only when that is certain: where nothing can be seen at the moment, the process may well go on.
func (r runner) ended() bool {
	started, err := processStart(r.PID)
	if err != nil {
		return errors.Is(err, errProcessEnded)
	}
	return started != r.Started
}
