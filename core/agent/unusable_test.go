package agent_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// plugins are what noria plugins list says, by name.
func (s *scene) plugins() map[string]api.Plugin {
	s.Helper()
	plugins := map[string]api.Plugin{}
	for _, plugin := range asked[[]api.Plugin](s, "plugins", "list") {
		plugins[plugin.Name] = plugin
	}
	return plugins
}

func everyCommandTellsOfThePlugin(t *testing.T, d *noriatest.Daemon) {
	t.Helper()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"status"}, 0, "simulated: its adapter is not ready (failed)"},
		{[]string{"plugins", "list", "-strict"}, 2, "the disk is not there yet"},
		{[]string{"plugins", "info", "simulated"}, 0, "does not describe itself"},
		{[]string{"plugins", "restart", "simulated"}, 1, "the disk is not there yet"},
		{[]string{"doctor"}, 1, "the disk is not there yet"},
		{[]string{"config", "validate"}, 78, "the disk is not there yet"},
		{[]string{"reload"}, 78, "Nothing was applied"},
	} {
		stdout, stderr, code := d.Run(c.args...)
		if flat := strings.Join(strings.Fields(stdout+stderr), " "); code != c.code || !strings.Contains(flat, c.says) {
			t.Errorf("noria %v: code %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, stdout, stderr)
		}
	}
}

func TestAPluginThatCannotBeUsedHarmsItsOwnProviderOnly(t *testing.T) {
	s := newScene(t, "ada")
	executable := s.Write("adapter", "#!/bin/sh\necho the disk is not there yet >&2\nexit 3\n")
	if err := os.Chmod(executable, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Write("noria.hcl", fmt.Sprintf("%splugin \"simulated\" {\n  path = %q\n  dev  = true\n}\nprovider \"simulated\" {\n  account \"a\" {\n  }\n}\nprovider \"claude\" {\n  upstream = %q\n%s}\n",
		hostConfiguration, executable, s.upstream.URL, s.account("ada")))
	d := s.Start().Ready()
	clientOf(d).served(t, "s")
	for _, words := range []string{"noria.hcl:8,10", "the disk is not there yet", "exit status 3", "the others serve without it"} {
		if !strings.Contains(d.Log(), words) {
			t.Errorf("the log does not say %q:\n%s", words, d.Log())
		}
	}
	if p := s.plugins()["simulated"]; p.Status != "failed" || p.Reason != "describe_failed" || p.Accounts != 1 || p.SHA256 == "" {
		t.Errorf("the plugin is listed as %+v", p)
	}
	everyCommandTellsOfThePlugin(t, d)
	resp, err := http.Get("http://" + d.Address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"simulated":"failed"`) {
		t.Errorf("readyz says %s, %v", body, err)
	}

	mended, err := os.ReadFile(filepath.Join(binaries.Dir, "noria-provider-simulated"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(executable, mended, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := d.Run("plugins", "restart", "simulated"); code != 0 {
		t.Fatalf("plugins restart: code %d: %s", code, stderr)
	}
	if p := s.plugins()["simulated"]; p.Status != "ready" {
		t.Errorf("after it was mended it is listed as %+v", p)
	}
	clientOf(d).served(t, "s")
}
