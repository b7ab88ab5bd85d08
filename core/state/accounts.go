package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// account is an account with what is kept beside its clocks.
type account struct {
	*quota.Account
	config      AccountConfig
	configured  bool
	switchedOff bool
	generation  string
	bindings    int
	writing     writing
}

// AccountConfig is what the configuration and the adapter's profile say of an account.
type AccountConfig struct {
	ID quota.AccountID
	// Enabled in the configuration.
	Enabled bool
	// Models are names or patterns that it may serve; empty: all.
	Models []string
	// Windows that the profile declares; nil while no profile is known, which changes nothing.
	Windows []quota.Declaration
	// Unmetered: the profile declares that it has no quota clocks.
	Unmetered bool
	// AllowOverage: extra credits may be spent.
	AllowOverage bool
	// UsageLag is how long the provider's own figures trail completed work.
	UsageLag time.Duration
}

// ApplyAccounts replaces the configured accounts; their order is the last tie-break. Accounts that are not named any more
// are not eligible from now on, and what is known of them is kept.
func (s *Store) ApplyAccounts(configs []AccountConfig, at time.Time) error {
	for _, c := range configs {
		if err := checkConfig(c); err != nil {
			return fmt.Errorf("apply account %s: %w", c.ID, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	now := s.moment(at)
	var entries []entry
	for _, c := range configs {
		if left, ended := s.ensure(c.ID).blockersUnder(c); ended {
			entries = append(entries, &blockersRow{Account: c.ID, Blockers: left})
		}
	}
	if _, err := s.commitBlockers(entries...); err != nil {
		return err
	}
	for _, a := range s.accounts {
		a.configured, a.Enabled = false, false
	}
	s.configured, s.providers = nil, make(map[string][]*quota.Account)
	for _, c := range configs {
		a := s.ensure(c.ID)
		a.apply(c, now)
		s.configured = append(s.configured, a)
		s.providers[c.ID.Provider] = append(s.providers[c.ID.Provider], a.Account)
	}
	s.notify()
	return nil
}

func checkConfig(c AccountConfig) error {
	for _, d := range c.Windows {
		if err := checkDeclaration(d); err != nil {
			return err
		}
	}
	return checkAccount(c.ID)
}

// blockersUnder are the blockers that are left under a new configuration: a sign-in may have happened while the account was
// off, and what the account is not entitled to is asked again.
func (a *account) blockersUnder(c AccountConfig) (left []quota.Blocker, ended bool) {
	var causes []quota.Cause
	first := a.config.ID == (quota.AccountID{})
	if !first && c.Enabled && !a.config.Enabled {
		causes = append(causes, quota.CauseAuth)
	}
	if !first && !slices.Equal(a.config.Models, c.Models) {
		causes = append(causes, quota.CauseNotEntitled)
	}
	return a.Without(causes...)
}

func (a *account) apply(c AccountConfig, now time.Time) {
	a.config, a.configured = c, true
	a.Models, a.Unmetered, a.AllowOverage, a.UsageLag = c.Models, c.Unmetered, c.AllowOverage, c.UsageLag
	a.Enabled = c.Enabled && !a.switchedOff
	if c.Windows != nil {
		a.Declare(c.Windows)
	}
	a.Settle(now)
}

// commitBlockers writes entries, and takes up the blockers among them once they are written.
func (s *Store) commitBlockers(entries ...entry) (sequence uint64, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	if sequence, err = s.commit(entries...); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if row, ok := e.(*blockersRow); ok {
			s.accounts[row.Account].Blockers = row.Blockers
		}
	}
	return sequence, nil
}

// SetEnabled turns the operator's switch. Switching on also ends what only a person can end: a sign-in that was missing.
func (s *Store) SetEnabled(id quota.AccountID, enabled bool, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return 0, fmt.Errorf("switch %s: %w", id, ErrUnknownAccount)
	}
	s.moment(at)
	entries := []entry{&accountRow{Account: id, SwitchedOff: !enabled, Generation: a.generation}}
	if left, ended := a.Without(quota.CauseAuth); enabled && ended {
		entries = append(entries, &blockersRow{Account: id, Blockers: left})
	}
	if sequence, err = s.commitBlockers(entries...); err != nil {
		return 0, err
	}
	a.switchedOff = !enabled
	a.Enabled = a.configured && a.config.Enabled && enabled
	s.notify()
	return sequence, nil
}

// ClearAuth ends the sign-in blockers of an account when the login behind its lease changed: when generation differs from
// the one known before, which outlives the process. An empty generation says that a sign-in surely happened. Nothing
// changed: sequence 0.
func (s *Store) ClearAuth(id quota.AccountID, generation string, at time.Time) (sequence uint64, err error) {
	if checkText("generation", generation, maxIdentity) != nil {
		generation = SessionHash(generation)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return 0, fmt.Errorf("clear sign-in of %s: %w", id, ErrUnknownAccount)
	}
	s.moment(at)
	if generation != "" && generation == a.generation {
		return 0, nil
	}
	var entries []entry
	if generation != "" {
		entries = append(entries, &accountRow{Account: id, SwitchedOff: a.switchedOff, Generation: generation})
	}
	left, ended := a.Without(quota.CauseAuth)
	if ended {
		entries = append(entries, &blockersRow{Account: id, Blockers: left})
	}
	if sequence, err = s.commitBlockers(entries...); err != nil {
		return 0, err
	}
	if generation != "" {
		a.generation = generation
	}
	if ended {
		s.notify()
	}
	return sequence, nil
}

// ClearEntitlements ends what a changed catalogue ends: the blockers of a provider's accounts that were not entitled.
func (s *Store) ClearEntitlements(provider string, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moment(at)
	var entries []entry
	for _, a := range s.providers[provider] {
		if left, ended := a.Without(quota.CauseNotEntitled); ended {
			entries = append(entries, &blockersRow{Account: a.ID, Blockers: left})
		}
	}
	if sequence, err = s.commitBlockers(entries...); sequence != 0 {
		s.notify()
	}
	return sequence, err
}

// ensure finds the account, or makes one that is not configured.
func (s *Store) ensure(id quota.AccountID) *account {
	a := s.accounts[id]
	if a == nil {
		a = &account{Account: quota.NewAccount(id, nil, nil, nil)}
		s.accounts[id] = a
	}
	return a
}
