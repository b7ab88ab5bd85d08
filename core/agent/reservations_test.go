package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

func TestReservationsAreToldUntilTheRequestEnds(t *testing.T) {
	store, err := state.Open(state.NewMemoryLog(false), state.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	id := quota.AccountID{Provider: "claude", Name: "work"}
	window := quota.Declaration{ID: "5h", Kind: quota.KindRolling, Length: 5 * time.Hour}
	if err := store.ApplyAccounts([]state.AccountConfig{{ID: id, Enabled: true, Windows: []quota.Declaration{window}}}, at); err != nil {
		t.Fatal(err)
	}
	reading := quota.Reading{Declaration: window, UsedPercent: 10, HasUsed: true, ResetsAt: at.Add(time.Hour), State: quota.Observed}
	if err := store.Observe(id, []quota.Reading{reading}, at, at); err != nil {
		t.Fatal(err)
	}
	d, err := store.Place(placement.Request{Attempt: 1, RequestID: "r1", Session: "claude/s", Provider: "claude", Model: "m", Binds: true, At: at})
	if err != nil || !d.Placed {
		t.Fatal(d, err)
	}
	told := &daemon{&Agent{store: store}}
	want := []api.Reservation{{
		Request: "r1", Account: "claude/work", Model: "m", StartedAt: at, Estimates: []api.Estimate{{Window: "5h", Name: "5h", Percent: 0.5}},
	}}
	for _, subject := range []string{"claude/s", "r1"} {
		if diff := cmp.Diff(want, told.reservations(subject)); diff != "" {
			t.Errorf("%s:\n%s", subject, diff)
		}
	}
	store.End(1, at)
	if left := told.reservations("claude/s"); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}
