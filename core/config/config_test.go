package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/config"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// write puts a configuration into its own directory.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "noria.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, path string) *config.Config {
	t.Helper()
	cfg, found := load(path)
	if len(found) != 0 {
		t.Fatalf("load %s: %v", path, found)
	}
	return cfg
}

func TestEmptyFileHasEveryDefault(t *testing.T) {
	inPrivateHome(t)
	path := write(t, "")
	want := &config.Config{Host: config.Host{
		Path:      path,
		Listen:    config.Listen{Address: "127.0.0.1:4517", Auth: config.AuthKey},
		State:     config.State{Dir: "/home/user/.local/state/noria", MaxBindings: 100_000, Idle: 30 * 24 * time.Hour},
		Telemetry: config.Telemetry{Refresh: 45 * time.Second},
		Placement: config.Placement{Fit: 0.5},
		Limits: config.Limits{
			Body: 64 << 20, ReplayMemory: 512 << 20, Connections: 1024,
			HeaderTime: 10 * time.Second, HoldTime: 15 * time.Second, Drain: time.Minute,
		},
		Log:       config.Log{Level: "info", Format: config.LogText},
		PluginDir: "/home/user/.local/share/noria/plugins",
	}}
	if diff := cmp.Diff(want, mustLoad(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDirectoriesFollowXDGUnlessRelative(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("XDG_STATE_HOME", "/x/state")
	t.Setenv("XDG_DATA_HOME", "relative")
	cfg := mustLoad(t, write(t, ""))
	if got, want := cfg.State.Dir, "/x/state/noria"; got != want {
		t.Errorf("state dir %q, want %q", got, want)
	}
	if got, want := cfg.PluginDir, "/home/user/.local/share/noria/plugins"; got != want {
		t.Errorf("plugin dir %q, want %q", got, want)
	}
	if got, want := cfg.ControlSocket(), "/x/state/noria/control.sock"; got != want {
		t.Errorf("socket %q, want %q", got, want)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	if got, want := cfg.ControlSocket(), "/run/user/1/noria/control.sock"; got != want {
		t.Errorf("socket %q, want %q", got, want)
	}
	cfg = mustLoad(t, write(t, "state {\n  dir = \"/elsewhere\"\n}\n"))
	if got, want := cfg.ControlSocket(), "/elsewhere/control.sock"; got != want {
		t.Errorf("socket beside a state directory of its own %q, want %q", got, want)
	}
}

func TestPluginSchemaMakesJSONWithDefaultsAndAbsolutePaths(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("NORIA_TEST_VALUE", "from the environment")
	path := write(t, `
provider "claude" {
  client   = "bin/client"
  patience = "90s"
  retries  = 3
  hosts    = ["a", "b"]
  labels   = { x = "y" }
  upstream = env("NORIA_TEST_VALUE")
  account "work" {
    home = "~/.claude-work"
  }
  account "ci" {
    token   = file("token")
    api_key = true
  }
}`)
	dir := filepath.Dir(path)
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	provider, _ := mustLoad(t, path).Provider("claude")
	got := []any{decoded(t, provider.Config.GetProviderJson())}
	for _, a := range provider.Config.GetAccounts() {
		got = append(got, decoded(t, a.GetConfigJson()))
	}
	want := []any{
		map[string]any{
			"client": dir + "/bin/client", "patience": "90s", "retries": 3.0, "hosts": []any{"a", "b"},
			"labels": map[string]any{"x": "y"}, "upstream": "from the environment",
		},
		map[string]any{"home": "/home/user/.claude-work"},
		map[string]any{"token": "secret", "api_key": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	provider, _ = mustLoad(t, write(t, `provider "claude" {}`)).Provider("claude")
	want = []any{map[string]any{"upstream": "https://upstream.example", "client": "/home/user/bin/client"}}
	if diff := cmp.Diff(want, []any{decoded(t, provider.Config.GetProviderJson())}); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("unmarshal %s: %v", raw, err)
	}
	return v
}

func TestHostResolvesCredentialsAndAccountSettings(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("NORIA_TEST_CREDENTIAL", "made-up-credential")
	path := write(t, `
provider "claude" {
  account "env" {
    models  = ["opus*", "haiku"]
    overage = "allow"
    credential { env = "NORIA_TEST_CREDENTIAL" }
  }
  account "file" {
    credential { file = "token" }
  }
  account "command" {
    credential { command = ["~/bin/show", "~/not-a-path"] }
  }
  account "off" {
    enabled = false
    credential { env = "NORIA_TEST_UNSET" }
  }
}`)
	dir := filepath.Dir(path)
	if err := os.WriteFile(filepath.Join(dir, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	provider, _ := mustLoad(t, path).Provider("claude")
	wantAccounts := []config.Account{
		{Name: "env", Enabled: true, Models: []string{"opus*", "haiku"}, Overage: config.OverageAllow},
		{Name: "file", Enabled: true, Overage: config.OverageAvoid},
		{Name: "command", Enabled: true, Overage: config.OverageAvoid},
		{Name: "off", Enabled: false, Overage: config.OverageAvoid},
	}
	if diff := cmp.Diff(wantAccounts, provider.Accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	accounts := provider.Config.GetAccounts()
	if got := accounts[0].GetCredential().GetValue(); got != "made-up-credential" {
		t.Errorf("credential of the environment: %q", got)
	}
	if got, want := accounts[1].GetCredential().GetFile(), dir+"/token"; got != want {
		t.Errorf("credential file %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"/home/user/bin/show", "~/not-a-path"}, accounts[2].GetCredential().GetCommand().GetArgv()); diff != "" {
		t.Errorf("credential command (-want +got):\n%s", diff)
	}
	if accounts[3].GetCredential() != nil || accounts[3].GetEnabled() {
		t.Errorf("a disabled account has a credential or is enabled: %v", accounts[3].GetEnabled())
	}
}

func TestPluginBlocksNameExecutables(t *testing.T) {
	inPrivateHome(t)
	digest := strings.Repeat("0A", 32)
	cfg := mustLoad(t, write(t, `
plugin_dir = "/srv/plugins"
plugin "acme" {
  sha256 = "`+digest+`"
}
plugin "mine" {
  path = "~/mine"
  dev  = true
}
plugin "claude" {
  environment = ["REGION"]
}`))
	want := []config.Plugin{
		{Name: "acme", Path: "/srv/plugins/noria-provider-acme", SHA256: strings.ToLower(digest)},
		{Name: "mine", Path: "/home/user/mine", Dev: true},
		{Name: "claude", Environment: []string{"REGION"}},
	}
	if diff := cmp.Diff(want, cfg.Plugins); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndescribedPluginLeavesItsBlocksUnchecked(t *testing.T) {
	inPrivateHome(t)
	file, found := config.Parse(write(t, `provider "claude" {
  anything = 1
  account "work" { home = "x" }
}`))
	cfg, decoded := file.Decode(map[string]*pluginv1.DescribeResponse{"claude": nil})
	if len(found)+len(decoded) != 0 {
		t.Fatal(found, decoded)
	}
	if p := cfg.Providers[0]; p.Config != nil || len(p.Accounts) != 1 {
		t.Errorf("got %d accounts and configuration %v", len(p.Accounts), p.Config != nil)
	}
}

func TestUnusableSchemasAreTheFaultOfThePlugin(t *testing.T) {
	inPrivateHome(t)
	text := pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING
	for _, c := range []struct {
		rule       string
		attributes []*pluginv1.Attribute
	}{
		{"a name of the host", []*pluginv1.Attribute{{Name: "enabled", Type: text}}},
		{"a name that is no name", []*pluginv1.Attribute{{Name: "a b", Type: text}}},
		{"the same name twice", []*pluginv1.Attribute{{Name: "a", Type: text}, {Name: "a", Type: text}}},
		{"an unknown type", []*pluginv1.Attribute{{Name: "a", Type: 99}}},
		{"a default of another type", []*pluginv1.Attribute{{Name: "a", Type: text, DefaultJson: `{"x":1}`}}},
		{"a default that is no JSON", []*pluginv1.Attribute{{Name: "a", Type: text, DefaultJson: `"`}}},
		{"too many", func() (many []*pluginv1.Attribute) {
			for i := range 200 {
				many = append(many, &pluginv1.Attribute{Name: "a" + strings.Repeat("b", i%60), Type: text})
			}
			return many
		}()},
	} {
		t.Run(c.rule, func(t *testing.T) {
			file, _ := config.Parse(write(t, `provider "claude" {
  account "work" {}
}`))
			cfg, found := file.Decode(map[string]*pluginv1.DescribeResponse{
				"claude": {Name: "claude", Provider: "claude", AccountSchema: &pluginv1.Schema{Attributes: c.attributes}},
			})
			if cfg != nil || len(found) != 1 || found[0].Summary != "Unusable plugin" || found[0].Range.StartLine != 1 {
				t.Errorf("got %v", found)
			}
		})
	}
}

func TestPluginDiagnosticsAreAtTheirLines(t *testing.T) {
	inPrivateHome(t)
	file, _ := config.Parse(write(t, `provider "claude" {
  retries = 99
  account "work" {
    home = "~/none"
  }
}`))
	for _, c := range []struct {
		rule               string
		account, attribute string
		line               int
		context            string
	}{
		{"an attribute of an account", "work", "home", 4, `provider "claude", account "work"`},
		{"an attribute of the provider", "", "retries", 2, `provider "claude"`},
		{"an account", "work", "", 3, `provider "claude"`},
		{"the provider", "", "", 1, ""},
		{"an attribute that is not set", "work", "token", 3, `provider "claude"`},
		{"an account that there is not", "none", "home", 1, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			found := file.At("claude", c.account, c.attribute, config.Diagnostic{Summary: "Broken"})
			if found.Summary != "Broken" || found.Range == nil || found.Range.StartLine != c.line || found.Snippet.Context != c.context {
				t.Errorf("got %+v", found)
			}
		})
	}
}

func TestFindingsAboutAnExecutableAreWhereItIsNamed(t *testing.T) {
	inPrivateHome(t)
	file, _ := config.Parse(write(t, `provider "claude" {
}
plugin "acme" {
  path   = "acme"
}
`))
	for _, c := range []struct {
		rule, plugin, attribute string
		line                    int
	}{
		{"the attribute", "acme", "path", 4},
		{"the block of an attribute that is not set", "acme", "sha256", 3},
		{"the provider of a bundled plugin", "claude", "path", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			found := file.AtPlugin(c.plugin, "claude", c.attribute, config.Diagnostic{Summary: "Broken"})
			if found.Summary != "Broken" || found.Range == nil || found.Range.StartLine != c.line {
				t.Errorf("got %+v", found)
			}
		})
	}
}

func TestDiffNamesSettingsAndNeverValues(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("NORIA_TEST_CREDENTIAL", "one")
	before := mustLoad(t, write(t, `
provider "claude" {
  account "same" {}
  account "gone" {}
  account "off" {}
  account "ci" {
    credential { env = "NORIA_TEST_CREDENTIAL" }
  }
}`))
	t.Setenv("NORIA_TEST_CREDENTIAL", "two")
	after := mustLoad(t, write(t, `
listen { address = "127.0.0.1:4600" }
telemetry { refresh = "60s" }
limits { drain = "1s" }
provider "claude" {
  retries = 1
  account "same" {}
  account "off" { enabled = false }
  account "new" {}
  account "ci" {
    credential { env = "NORIA_TEST_CREDENTIAL" }
  }
}
plugin "acme" { dev = true }
provider "acme" { endpoint = "http://127.0.0.1:9000" }
`))
	want := []config.Change{
		{What: "listen", How: config.Changed, Restart: true},
		{What: "telemetry.refresh", How: config.Changed},
		{What: "limits.drain", How: config.Changed},
		{What: "plugin.acme", How: config.Added},
		{What: "provider.claude", How: config.Changed},
		{What: "provider.claude.account.gone", How: config.Removed},
		{What: "provider.claude.account.off", How: config.Changed},
		{What: "provider.claude.account.new", How: config.Added},
		{What: "provider.claude.account.ci", How: config.Changed},
		{What: "provider.acme", How: config.Added},
	}
	if diff := cmp.Diff(want, config.Diff(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if changes := config.Diff(before, before); changes != nil {
		t.Errorf("the same configuration differs: %v", changes)
	}
}

func TestWhatIsInForceDiffersOnlyInWhatNeedsANewStart(t *testing.T) {
	inPrivateHome(t)
	before := mustLoad(t, write(t, ""))
	after := mustLoad(t, write(t, `
plugin_dir = "plugins"
listen { address = "127.0.0.1:4600" }
state {
  dir          = "/srv/state"
  max_bindings = 7
}
telemetry { refresh = "60s" }
limits {
  connections = 7
  header_time = "1s"
}
log {
  level  = "debug"
  format = "json"
}
metrics { address = "127.0.0.1:4601" }
provider "claude" {
  account "new" {}
}`))
	inForce := config.InForce(before, after)
	applied, pending := config.Diff(before, inForce), config.Diff(inForce, after)
	for _, change := range applied {
		if change.Restart {
			t.Errorf("%s was applied", change.What)
		}
	}
	for _, change := range pending {
		if !change.Restart {
			t.Errorf("%s was not applied", change.What)
		}
	}
	if len(applied) != 6 || len(pending) != 5 {
		t.Errorf("applied %v, pending %v", applied, pending)
	}
}

func TestEffectiveConfigurationShowsAllButSecrets(t *testing.T) {
	inPrivateHome(t)
	t.Setenv("NORIA_TEST_CREDENTIAL", "made-up-credential")
	path := write(t, `
provider "claude" {
  retries = 3
  labels  = { x = "y" }
  account "work" {
    token  = "made-up-token"
    models = ["opus*"]
    credential { env = "NORIA_TEST_CREDENTIAL" }
  }
}
plugin "acme" { dev = true }`)
	text := string(mustLoad(t, path).Effective())
	if strings.Contains(text, "made-up") {
		t.Errorf("a secret is shown:\n%s", text)
	}
	golden(t, "testdata/effective.golden", []byte(text))
}

func TestFormatIsStableAndKeepsComments(t *testing.T) {
	path := write(t, "# first\nlisten {\naddress=\"127.0.0.1:1\" # why\n}\n")
	before, after, found := config.Format(path)
	if len(found) != 0 || string(before) == string(after) {
		t.Fatalf("%v %q", found, after)
	}
	if want := "# first\nlisten {\n  address = \"127.0.0.1:1\" # why\n}\n"; string(after) != want {
		t.Errorf("got %q, want %q", after, want)
	}
	if _, _, found := config.Format(write(t, "listen {")); !found.HasErrors() {
		t.Error("a broken file was formatted")
	}
}

func TestThousandsOfErrorsAreBounded(t *testing.T) {
	inPrivateHome(t)
	_, found := config.Parse(write(t, strings.Repeat("x {}\n", 50_000)))
	if len(found) != 101 || found.Sorted()[100].Summary != "49900 more from here on" {
		t.Errorf("got %d, the last one %v", len(found), found[len(found)-1])
	}
}

// pipe makes a named pipe.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPipesInAConfigurationAreNotWaitedFor(t *testing.T) {
	inPrivateHome(t)
	path := pipe(t)
	for _, text := range []string{
		fmt.Sprintf("state {\n  dir = file(%q)\n}\n", path),
		fmt.Sprintf("listen {\n  tls_cert = %q\n  tls_key = %q\n}\n", path, path),
		fmt.Sprintf("provider \"claude\" {\n  account \"work\" {\n    credential { file = %q }\n  }\n}\n", path),
	} {
		_, found := load(write(t, text))
		if len(found) == 0 || !strings.Contains(found[0].Detail, "it is not a regular file") {
			t.Errorf("%s: found %v", text, found)
		}
	}
}

func TestHostsAreAsInAHostHeader(t *testing.T) {
	inPrivateHome(t)
	cfg := mustLoad(t, write(t, `listen { hosts = ["Noria.Example", "192.0.2.7", "2001:DB8::1", "[2001:db8::2]"] }`))
	want := []string{"noria.example", "192.0.2.7", "[2001:db8::1]", "[2001:db8::2]"}
	if diff := cmp.Diff(want, cfg.Listen.Hosts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnreadableConfigurationsStillNameTheSocket(t *testing.T) {
	inPrivateHome(t)
	for _, c := range []struct{ rule, path string }{
		{"no file", filepath.Join(t.TempDir(), "none.hcl")},
		{"a pipe that nobody writes to", pipe(t)},
		{"a directory", t.TempDir()},
		{"a file too large", write(t, strings.Repeat("#\n", 1<<20))},
		{"no HCL", write(t, "}{")},
		{"no text", write(t, "\xff\xfe\x00")},
	} {
		t.Run(c.rule, func(t *testing.T) {
			file, found := config.Parse(c.path)
			if !found.HasErrors() || found.Err() == nil {
				t.Errorf("no error: %v", found)
			}
			if got, want := file.ControlSocket(), "/home/user/.local/state/noria/control.sock"; got != want {
				t.Errorf("socket %q, want %q", got, want)
			}
			if cfg, _ := file.Decode(nil); cfg != nil {
				t.Error("a configuration was decoded")
			}
		})
	}
}
