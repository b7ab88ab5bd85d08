package agent_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// held is an address that somebody listens on until release.
func held(t *testing.T) (address string, release func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), func() { listener.Close() }
}

func hasMetrics(address string) bool {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func TestReloadAppliesWhatNeedsNoNewStart(t *testing.T) {
	s := newScene(t)
	write := func(settings string) {
		s.Write("noria.hcl", fmt.Sprintf("%s%sprovider \"claude\" {\n  upstream = %q\n  account \"away\" {\n    home = \"none\"\n  }\n}\n",
			hostConfiguration, settings, s.upstream.URL))
	}
	first, release := held(t)
	release()
	write(fmt.Sprintf("metrics {\n  address = %q\n}\n", first))
	d := s.Start().Ready()
	noriatest.Eventually(t, "metrics are served", func() bool { return hasMetrics(first) })

	second, release := held(t)
	release()
	settings := fmt.Sprintf("metrics {\n  address = %q\n}\nlog {\n  level = \"debug\"\n}\ntelemetry {\n  refresh = \"60s\"\n}\nlimits {\n  connections = 7\n  header_time = \"20s\"\n}\n", second)
	write(settings)
	result := asked[api.ReloadResult](s, "reload")
	want := []config.Change{
		{What: "telemetry.refresh", How: config.Changed},
		{What: "limits.connections", How: config.Changed},
		{What: "limits.header_time", How: config.Changed, Restart: true},
		{What: "log.level", How: config.Changed},
		{What: "metrics", How: config.Changed},
	}
	if diff := cmp.Diff(want, result.Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	noriatest.Eventually(t, "the metrics have moved", func() bool { return hasMetrics(second) && !hasMetrics(first) })
	d.Run("accounts", "refresh") // finds no login, which is told when it is debugged
	if !strings.Contains(d.Log(), "[DEBUG]") {
		t.Errorf("the level of the log was not applied:\n%s", d.Log())
	}

	taken, _ := held(t)
	write(strings.Replace(settings, second, taken, 1))
	_, stderr, code := d.Run("reload")
	if code != 78 || !strings.Contains(stderr, "noria.hcl:8,13") || !strings.Contains(stderr, "Nothing was applied") {
		t.Errorf("reload with an address that is taken: code %d\n%s", code, stderr)
	}
	if !hasMetrics(second) {
		t.Error("a reload that was refused ended the metrics")
	}
	write("")
	if _, stderr, code := d.Run("reload"); code != 0 {
		t.Errorf("reload: code %d: %s", code, stderr)
	}
	noriatest.Eventually(t, "the metrics are gone", func() bool { return !hasMetrics(second) })
	if code := d.Stop(); code != 0 {
		t.Errorf("the daemon ended with %d", code)
	}
}

// An adapter that is started by a reload looks what the daemon says of the accounts by then.
func TestReloadTakesAccountsAwayBeforeAdaptersStart(t *testing.T) {
	s := newScene(t, "stays", "goes", "off", "new")
	environment := ""
	for _, variable := range s.Environment() {
		environment += fmt.Sprintf(" '%s'", variable)
	}
	executable := s.Write("adapter", fmt.Sprintf("#!/bin/sh\n[ -e '%s' ] && [ \"$1\" != describe ] && env%s '%s' accounts list -json >'%s'\nexec '%s' \"$@\"\n",
		s.Path("look"), environment, binaries.Noria(), s.Path("seen"), filepath.Join(binaries.Dir, "noria-provider-claude")))
	if err := os.Chmod(executable, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(accounts string) {
		s.Write("noria.hcl", fmt.Sprintf("%splugin \"claude\" {\n  path = %q\n  dev  = true\n}\nprovider \"claude\" {\n  upstream = %q\n%s}\n",
			hostConfiguration, executable, s.upstream.URL, accounts))
	}
	write(s.account("stays") + s.account("goes") + s.account("off"))
	s.Start().Ready()
	s.Write("look", "")
	write(s.account("new") + s.account("stays") + strings.Replace(s.account("off"), "{\n", "{\n    enabled = false\n", 1))
	s.do("reload")
	enabled := func(list string) map[string]bool {
		var accounts []api.Account
		if err := json.Unmarshal([]byte(list), &accounts); err != nil {
			t.Fatalf("%v in %q", err, list)
		}
		enabled := map[string]bool{}
		for _, account := range accounts {
			enabled[account.Name] = account.Enabled
		}
		return enabled
	}
	seen, err := os.ReadFile(s.Path("seen"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"stays": true, "off": false}
	if diff := cmp.Diff(want, enabled(string(seen))); diff != "" {
		t.Errorf("while the adapter starts (-want +got):\n%s", diff)
	}
	want["new"] = true
	if diff := cmp.Diff(want, enabled(s.do("accounts", "list", "-json"))); diff != "" {
		t.Errorf("after the reload (-want +got):\n%s", diff)
	}
}
