package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func setupWith(accounts ...config.Account) *Setup {
	return &Setup{Config: &config.Config{Providers: []config.Provider{{Name: "p", Accounts: accounts}}}}
}

func newAccountsAgent(t *testing.T) *Agent {
	t.Helper()
	store, err := state.Open(state.NewMemoryLog(false), state.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return &Agent{store: store, clock: clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), adapters: newAdapters(newProbes()), reloading: newTurn()}
}

// seen are the accounts of state, and whether they are enabled.
func (a *Agent) seen() map[string]bool {
	seen := map[string]bool{}
	for _, account := range a.store.Accounts(a.clock.Now()) {
		seen[account.ID.Name] = account.Enabled
	}
	return seen
}

func TestProfileThatComesDuringAReloadBringsNoOldAccountBack(t *testing.T) {
	a := newAccountsAgent(t)
	profile := &providerv1.Profile{Routes: []*providerv1.Route{{Method: "POST", Path: "/x", Kind: providerv1.RouteKind_ROUTE_KIND_TURN}}}
	before := setupWith(config.Account{Name: "stays", Enabled: true}, config.Account{Name: "goes", Enabled: true}, config.Account{Name: "off", Enabled: true})
	after := setupWith(config.Account{Name: "new", Enabled: true}, config.Account{Name: "off"}, config.Account{Name: "stays", Enabled: true})
	a.setup.Store(before)
	if err := a.tellAccounts(before); err != nil {
		t.Fatal(err)
	}
	if err := a.withdrawAccounts(after); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"stays": true, "off": false}
	if diff := cmp.Diff(want, a.seen()); diff != "" {
		t.Errorf("before any adapter was told (-want +got):\n%s", diff)
	}
	if err := a.takeProfile("p", profile); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, a.seen()); diff != "" {
		t.Errorf("after an adapter's profile (-want +got):\n%s", diff)
	}
	if err := a.tellAccounts(after); err != nil {
		t.Fatal(err)
	}
	want["new"] = true
	if diff := cmp.Diff(want, a.seen()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

func TestWhatAConfigurationTakesAwayIsLess(t *testing.T) {
	id := quota.AccountID{Provider: "p", Name: "a"}
	all := state.AccountConfig{ID: id, Enabled: true, AllowOverage: true}
	for name, c := range map[string]struct{ before, after, want []state.AccountConfig }{
		"same":       {[]state.AccountConfig{all}, []state.AccountConfig{all}, []state.AccountConfig{all}},
		"removed":    {[]state.AccountConfig{all}, nil, nil},
		"added":      {nil, []state.AccountConfig{all}, nil},
		"no overage": {[]state.AccountConfig{all}, []state.AccountConfig{{ID: id, Enabled: true}}, []state.AccountConfig{{ID: id, Enabled: true}}},
		"enabled":    {[]state.AccountConfig{{ID: id}}, []state.AccountConfig{all}, []state.AccountConfig{{ID: id}}},
	} {
		if diff := cmp.Diff(c.want, reduced(c.before, c.after)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhoWaitsForAnotherReloadCanGiveUp(t *testing.T) {
	a := newAccountsAgent(t)
	if err := a.reloading.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := a.reload(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("reload: %v", err)
	}
}
