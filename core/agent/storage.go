package agent

import (
	"errors"
	"fmt"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/state"
)

// openState recovers what is kept, or starts from nothing in memory for a demonstration.
func (a *Agent) openState(cfg *config.Config) error {
	log, err := a.openLog(cfg)
	if err != nil {
		return err
	}
	store, err := state.Open(log, settingsOf(cfg))
	if err != nil {
		return errors.Join(fmt.Errorf("open state in %s: %w", cfg.State.Dir, err), log.Close())
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
	if errors.As(err, new(*journal.LockedError)) {
		return nil, fmt.Errorf("another daemon uses this state directory; stop it, or set another one in noria.hcl (state { dir = … }): %w", err)
	}
	if err != nil {
		return nil, err
	}
	a.journal = log
	return log, nil
}

func settingsOf(cfg *config.Config) state.Settings {
	return state.Settings{Fit: &cfg.Placement.Fit, MaxBindings: cfg.State.MaxBindings, Idle: cfg.State.Idle}
}
