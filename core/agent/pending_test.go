package agent_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
)

func TestWhatWaitsForANewStartIsToldAtEveryReloadAndTouchesNothing(t *testing.T) {
	s := newScene(t, "ada")
	d := s.Start().Ready()
	s.Write("noria.hcl", fmt.Sprintf("listen {\n  address = \"127.0.0.1:0\"\n  hosts = [\"noria.example\"]\n}\nstate {\n  dir = \"elsewhere\"\n}\nprovider \"claude\" {\n  upstream = %q\n%s}\n", s.upstream.URL, s.account("ada")))
	want := []config.Change{
		{What: "listen", How: config.Changed, Restart: true}, {What: "state.dir", How: config.Changed, Restart: true},
	}
	for range 2 {
		// The daemon is reached by the configuration that it was started with: its socket is in the state directory of that.
		client := api.NewClient(s.Path("state", "control.sock"))
		result, err := client.Reload(t.Context())
		client.Close()
		if err != nil || !result.Applied {
			t.Fatalf("reload: %+v, %v", result, err)
		}
		if diff := cmp.Diff(want, result.Changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	}
	if _, err := os.Lstat(s.Path("elsewhere")); !os.IsNotExist(err) {
		t.Errorf("a state directory that is not in use yet was made: %v", err)
	}
	if code := d.Stop(); code != 0 {
		t.Errorf("the daemon ended with %d", code)
	}
}
