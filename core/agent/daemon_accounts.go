package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// Accounts in configuration order.
func (d *daemon) Accounts(context.Context) ([]api.Account, error) {
	now := d.clock.Now()
	views := d.store.Accounts(now)
	freshSince := now.Add(-2 * d.setup.Load().Config.Telemetry.Refresh)
	accounts := make([]api.Account, 0, len(views))
	for _, view := range views {
		accounts = append(accounts, accountOf(view, d.probes.of(view.ID), freshSince))
	}
	return accounts, nil
}

func (d *daemon) account(ctx context.Context, id quota.AccountID) (api.Account, error) {
	accounts, err := d.Accounts(ctx)
	if err != nil {
		return api.Account{}, err
	}
	for _, account := range accounts {
		if account.ID() == id {
			return account, nil
		}
	}
	return api.Account{}, unknownAccount(id)
}

func unknownAccount(id quota.AccountID) *api.Error {
	err := api.Errorf(api.CodeNotFound, "no account %s is configured", id)
	err.Remedy = "\"noria accounts list\" shows them"
	return err
}

// SetAccountEnabled turns the operator's switch, durably.
func (d *daemon) SetAccountEnabled(ctx context.Context, id quota.AccountID, enabled bool) (api.Account, error) {
	if _, err := d.account(ctx, id); err != nil {
		return api.Account{}, err
	}
	sequence, err := d.store.SetEnabled(id, enabled, d.clock.Now())
	if err != nil {
		return api.Account{}, fmt.Errorf("switch account %s: %w", id, err)
	}
	if err := d.store.Durable(ctx, sequence); err != nil {
		return api.Account{}, fmt.Errorf("switch account %s: %w", id, err)
	}
	operation := events.OperationAccountEnabled
	if !enabled {
		operation = events.OperationAccountDisabled
		d.dropLease(id)
	}
	d.recorder.add(events.Event{
		At: d.clock.Now(), Component: events.ComponentAPI, Operation: operation, Provider: id.Provider, Account: id.Name,
	})
	return d.account(ctx, id)
}

// RefreshAccounts reads the quota of these accounts now. A read that fails is told in the account's ProbeError.
func (d *daemon) RefreshAccounts(ctx context.Context, ids []quota.AccountID) ([]api.Account, error) {
	all, err := d.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	known := map[quota.AccountID]bool{}
	for _, account := range all {
		known[account.ID()] = true
	}
	for _, id := range ids {
		if !known[id] {
			return nil, unknownAccount(id)
		}
	}
	if len(ids) == 0 {
		for _, account := range all {
			if account.Enabled {
				ids = append(ids, account.ID())
			}
		}
	}
	for _, id := range ids {
		d.lookAgain(ctx, id)
		// The result comes through the hooks, a failure as ProbeError.
		_ = d.host.RefreshQuota(ctx, id)
	}
	return d.Accounts(ctx)
}

func accountOf(view state.AccountView, probe probe, freshSince time.Time) api.Account {
	account := api.Account{
		Provider: view.ID.Provider, Name: view.ID.Name, Enabled: view.Enabled, Models: view.Models,
		Auth: probe.login, ProbeError: probe.failure, Overage: string(config.OverageAvoid), Usable: view.Usable, Sessions: view.Bindings, InFlight: view.InFlight,
		Windows: make([]api.Window, 0, len(view.Windows)), Blockers: make([]api.Blocker, 0, len(view.Blockers)),
	}
	if view.SignedOut {
		// What the upstream refused counts for more than what a probe was told.
		account.Auth = loginSignedOut
	}
	if why := probe.refusal; why != nil {
		account.Auth, account.AuthDetail, account.Usable = why.login, why.reason, false
	}
	if view.AllowOverage {
		account.Overage = string(config.OverageAllow)
	}
	switch {
	case !view.EnabledInConfig:
		account.DisabledBy = "config"
	case view.SwitchedOff:
		account.DisabledBy = "operator"
	}
	for _, w := range view.Windows {
		account.Windows = append(account.Windows, api.Window{
			ID: w.ID, Kind: w.Kind, Label: w.Label, LengthSeconds: int64(w.Length.Seconds()), Models: w.Models,
			State: windowState(w, freshSince), UsedPercent: w.UsedPercent, RemainingPercent: w.RemainingPercent, Estimated: w.Estimated,
			ResetsAt: w.ResetsAt, Predicted: w.Predicted, Source: w.Source, ObservedAt: w.ObservedAt,
		})
	}
	for _, b := range view.Blockers {
		account.Blockers = append(account.Blockers, api.Blocker{
			Cause: b.Cause, Model: b.Model, Window: b.Window, Reason: b.Reason,
			ClearsAt: b.ClearsAt, NoLaterThan: b.NoLaterThan, ObservedAt: b.ObservedAt, Shown: b.Shown,
		})
	}
	for _, c := range view.Cooldowns {
		account.Blockers = append(account.Blockers, api.Blocker{
			Cause: c.Cause, ClearsAt: c.Until, ObservedAt: c.Since, Cooldown: true,
		})
	}
	return account
}

// windowState calls only what was read of late fresh. Older readings are as good for placement, but people should see it.
func windowState(w quota.WindowView, freshSince time.Time) string {
	if w.State == quota.ViewFresh && w.ObservedAt.Before(freshSince) {
		return "observed"
	}
	return string(w.State)
}
