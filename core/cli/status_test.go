package cli_test

import (
	"context"
	"testing"

	"github.com/noria-dev/noria/core/api"
)

// degradedDaemon cannot write its state, and one of its adapters failed.
type degradedDaemon struct{ *fakeDaemon }

func (d degradedDaemon) Status(ctx context.Context) (api.Status, error) {
	status, err := d.fakeDaemon.Status(ctx)
	status.Journal = "degraded"
	status.StateFindings = []api.StateFinding{
		{Level: "note", What: "the run before was not stopped in order", Where: "state directory", Do: "nothing to do"},
		{Level: "fault", What: "since noon nothing is written durably: no space left on device", Where: "state directory", Do: "free some space"},
	}
	status.Providers = append(status.Providers, api.ProviderStatus{Name: "acme", Adapter: "failed", Unchecked: true, Usable: 1})
	return status, err
}

func TestStatusTellsOfTroubleAndWhatToDo(t *testing.T) {
	inPrivateHome(t)
	serve(t, degradedDaemon{&fakeDaemon{}})
	code, stdout, stderr := noria(t, "status")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d %q", code, stderr)
	}
	golden(t, "status-troubles", stdout)
}
