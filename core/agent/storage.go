package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/state"
)

// makeStateDirectory makes the directory of the configuration if it is missing.
func makeStateDirectory(file *config.File) error {
	if err := os.MkdirAll(file.State.Dir, 0o700); err != nil {
		return file.StateProblem(fmt.Sprintf("It cannot be made: %v.", err), "Set another state.dir.")
	}
	return nil
}

// openState recovers what is kept, or starts from nothing in memory for a demonstration.
func (a *Agent) openState(cfg *config.Config) error {
	log, err := a.openLog(cfg)
	if err != nil {
		return err
	}
	store, err := state.Open(log, settingsOf(cfg))
	if err != nil {
		return errors.Join(journalError(fmt.Errorf("open state in %s: %w", cfg.State.Dir, err)), log.Close())
	}
	a.store = store
	return nil
}

func (a *Agent) openLog(cfg *config.Config) (state.Log, error) {
	if a.options.Dev {
		return state.NewMemoryLog(false), nil
	}
	log, err := journal.Open(journal.Options{
		Dir: cfg.State.Dir, Logger: a.log.Named("journal"), Clock: a.clock, OnCommit: a.recorder.metrics.ObserveJournalSync,
	})
	if err != nil {
		return nil, journalError(err)
	}
	a.journal = log
	return log, nil
}

// journalError gives an error of the journal the remedy that it has.
func journalError(err error) error {
	var (
		locked *journal.LockedError
		unsafe *journal.UnsafeError
		newer  *journal.NewerFormatError
	)
	switch {
	case errors.As(err, &locked):
		return refuseStart(fmt.Errorf("another daemon uses this state directory: %w", err), "stop that one, or give this one another state.dir in noria.hcl")
	case errors.As(err, &unsafe):
		return refuseStart(err, unsafe.Remedy)
	case errors.As(err, &newer):
		return refuseStart(err, "use that release again, or set another state.dir in noria.hcl; nothing was changed")
	}
	return err
}

func settingsOf(cfg *config.Config) state.Settings {
	return state.Settings{Fit: &cfg.Placement.Fit, MaxBindings: cfg.State.MaxBindings, Idle: cfg.State.Idle}
}
