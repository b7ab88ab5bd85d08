package agent

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/state"
)

func TestAClockThatIsNotBelievedIsTold(t *testing.T) {
	store, err := state.Open(state.NewMemoryLog(false), state.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	right := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	wall := clock.NewFake(right)
	a := &Agent{store: store, clock: wall, log: hclog.New(&hclog.LoggerOptions{Output: &out})}
	held := false
	tick := func(at time.Time) (logged, found string) {
		out.Reset()
		wall.Set(at)
		held = a.tickOnce(held)
		for _, f := range (&daemon{a}).stateFindings() {
			found += f.Where
		}
		return out.String(), found
	}
	for _, step := range []struct {
		at            time.Time
		logged, found string
	}{
		{right, "", ""},
		{right.AddDate(70, 0, 0), "leapt out of reach", "wall clock"},
		{right.AddDate(70, 0, 0).Add(time.Second), "", "wall clock"},
		{right.Add(2 * time.Second), "believed again", ""},
	} {
		logged, found := tick(step.at)
		if !strings.Contains(logged, step.logged) || (step.logged == "" && logged != "") || found != step.found {
			t.Errorf("at %v: logged %q, found %q", step.at, logged, found)
		}
	}
}
