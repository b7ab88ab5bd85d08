package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

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
	for _, a := range s.accounts {
		a.configured, a.Enabled = false, false
	}
	s.configured, s.providers = nil, make(map[string][]*quota.Account)
	var entries []entry
	for _, c := range configs {
		a := s.ensure(c.ID)
		if a.apply(c, now) {
			entries = append(entries, &blockersRow{Account: a.ID, Blockers: a.Blockers})
		}
		s.configured = append(s.configured, a)
		s.providers[c.ID.Provider] = append(s.providers[c.ID.Provider], a.Account)
	}
	s.notify()
	if len(entries) == 0 {
		return nil
	}
	_, err := s.commit(entries...)
	return err
}

func checkConfig(c AccountConfig) error {
	for _, d := range c.Windows {
		if err := checkDeclaration(d); err != nil {
			return err
		}
	}
	return checkAccount(c.ID)
}

// apply reports whether blockers went: a sign-in may have happened while the account was off, and what the account is not
// entitled to is asked again under a new configuration.
func (a *account) apply(c AccountConfig, now time.Time) (cleared bool) {
	first := a.config.ID == (quota.AccountID{})
	if !first && c.Enabled && !a.config.Enabled {
		cleared = a.ClearAuth()
	}
	if !first && !slices.Equal(a.config.Models, c.Models) {
		cleared = a.ClearEntitlement() || cleared
	}
	a.config, a.configured = c, true
	a.Models, a.Unmetered, a.AllowOverage, a.UsageLag = c.Models, c.Unmetered, c.AllowOverage, c.UsageLag
	a.Enabled = c.Enabled && !a.switchedOff
	if c.Windows != nil {
		a.Declare(c.Windows)
	}
	a.Settle(now)
	return cleared
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
	entries := []entry{&accountRow{Account: id, SwitchedOff: !enabled, Login: a.login}}
	if enabled && a.ClearAuth() {
		entries = append(entries, &blockersRow{Account: id, Blockers: a.Blockers})
	}
	if sequence, err = s.commit(entries...); err != nil {
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
	if generation != "" && generation == a.login {
		return 0, nil
	}
	var entries []entry
	if generation != "" {
		entries = append(entries, &accountRow{Account: id, SwitchedOff: a.switchedOff, Login: generation})
	}
	if a.ClearAuth() {
		entries = append(entries, &blockersRow{Account: id, Blockers: a.Blockers})
		s.notify()
	}
	if len(entries) == 0 {
		return 0, nil
	}
	if sequence, err = s.commit(entries...); err == nil && generation != "" {
		a.login = generation
	}
	return sequence, err
}

// ClearEntitlements ends what a changed catalogue ends: the blockers of a provider's accounts that were not entitled.
func (s *Store) ClearEntitlements(provider string, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moment(at)
	var entries []entry
	for _, a := range s.providers[provider] {
		if a.ClearEntitlement() {
			entries = append(entries, &blockersRow{Account: a.ID, Blockers: a.Blockers})
		}
	}
	if len(entries) == 0 {
		return 0, nil
	}
	s.notify()
	return s.commit(entries...)
}

// ForgetQuota drops what was read of an account's quota, at the boundary of a new login; see quota.Account.
func (s *Store) ForgetQuota(id quota.AccountID, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return fmt.Errorf("forget quota of %s: %w", id, ErrUnknownAccount)
	}
	s.moment(at)
	a.ForgetObservations()
	a.writing.dirty = true
	s.notify()
	return nil
}

// Observe takes the windows that one source reported in one read. sentAt is when it was asked for; received is now.
func (s *Store) Observe(id quota.AccountID, readings []quota.Reading, sentAt, received time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[id]
	if a == nil {
		return fmt.Errorf("observe %s: %w", id, ErrUnknownAccount)
	}
	if s.closed {
		return ErrClosed
	}
	now := s.moment(received)
	changed, blockers := a.Observe(boundedReadings(readings, sentAt.UTC(), now), now)
	if changed {
		a.writing.dirty = true
		s.notify()
	}
	if !blockers {
		return nil
	}
	_, err := s.commit(&blockersRow{Account: id, Blockers: a.Blockers})
	return err
}

// boundedReadings drops readings that may not become rows, and gives the others times that are not in the future.
func boundedReadings(readings []quota.Reading, sentAt, now time.Time) []quota.Reading {
	kept := make([]quota.Reading, 0, len(readings))
	for _, r := range readings {
		if checkDeclaration(r.Declaration) != nil || checkFinite("percent", r.UsedPercent) != nil || checkText("source", string(r.Source), maxCode) != nil {
			continue
		}
		switch r.State {
		case quota.Observed, quota.Exhausted, quota.AwaitingFirstUse, quota.Pending, quota.NotExposed, quota.Unknown:
		default:
			continue
		}
		r.UsedPercent = min(max(r.UsedPercent, 0), 100)
		if checkTime("resets at", r.ResetsAt) != nil {
			r.ResetsAt = time.Time{}
		}
		r.ResetsAt, r.ObservedAt = r.ResetsAt.UTC(), r.ObservedAt.UTC()
		if r.ObservedAt.IsZero() {
			r.ObservedAt = sentAt
		}
		if r.ObservedAt.After(now) || r.ObservedAt.IsZero() {
			r.ObservedAt = now
		}
		kept = append(kept, r)
	}
	return kept
}

// CredentialCame notes that the credential of an account that was paused for the want of it is here.
func (s *Store) CredentialCame(id quota.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[id]; a != nil {
		a.CredentialCame()
		s.notify()
	}
}

// NetworkFailure notes a connection failure that belonged to no attempt: once it repeats, new placements pause.
func (s *Store) NetworkFailure(id quota.AccountID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[id]; a != nil {
		a.Unreachable(s.moment(at))
		s.notify()
	}
}
