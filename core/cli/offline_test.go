package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/cli"
	"github.com/noria-dev/noria/core/config"
)

// put writes a file with its directories.
func put(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInitWritesTheHomesThatItFinds(t *testing.T) {
	dir := inPrivateHome(t)
	home := filepath.Join(dir, "home")
	put(t, filepath.Join(home, ".claude", ".credentials.json"), "{}", 0o600)
	put(t, filepath.Join(home, ".claude-work", "settings.json"), "{}", 0o600)
	put(t, filepath.Join(home, ".claude-${env} \"x\"", "settings.json"), "{}", 0o600)
	put(t, filepath.Join(home, ".claude-empty", "unrelated"), "", 0o600)
	put(t, filepath.Join(dir, "moved", "auth.json"), "{}", 0o600)
	t.Setenv("CODEX_HOME", filepath.Join(dir, "moved"))
	code, stdout, stderr := noria(t, "init")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d %q", code, stderr)
	}
	golden(t, "init", strings.ReplaceAll(stdout, dir, "DIR"))
	path := filepath.Join(home, ".config", "noria", "noria.hcl")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "init-config", strings.ReplaceAll(string(written), dir, "DIR"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if _, found := config.Parse(path); len(found) != 0 {
		t.Errorf("what was written is wrong: %v", found)
	}

	code, stdout, stderr = noria(t, "init")
	if again, err := os.ReadFile(path); code != 4 || stdout != "" || !strings.Contains(stderr, "exists already") || err != nil || string(again) != string(written) {
		t.Errorf("a second time: exit %d %q %q %v", code, stdout, stderr, err)
	}
	if code, stdout, _ := noria(t, "init", "-print"); code != 0 || stdout != string(written) {
		t.Errorf("exit %d %q", code, stdout)
	}
}

func TestInitWithoutAHomeWritesNothing(t *testing.T) {
	dir := inPrivateHome(t)
	code, stdout, stderr := noria(t, "init")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "log in first") {
		t.Errorf("exit %d %q %q", code, stdout, stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

func TestConfigCommands(t *testing.T) {
	dir := inPrivateHome(t)
	good := put(t, filepath.Join(dir, "good.hcl"), "listen {\n  address = \"127.0.0.1:4600\"\n}\n", 0o600)
	ugly := put(t, filepath.Join(dir, "ugly.hcl"), "listen {\naddress=\"127.0.0.1:4600\"\n}\n", 0o600)
	bad := put(t, filepath.Join(dir, "bad.hcl"), "listen {\n  adress = \"127.0.0.1:4600\"\n}\n", 0o600)
	broken := put(t, filepath.Join(dir, "broken.hcl"), "listen {\n", 0o600)
	for _, c := range []struct {
		rule   string
		args   []string
		code   int
		stdout string
	}{
		{"validate a good one", []string{"config", "validate", good}, 0, good + " is valid.\n"},
		{"validate the one of -config", []string{"config", "validate", "-config", good}, 0, good + " is valid.\n"},
		{"validate a good one as JSON", []string{"config", "validate", "-json", good}, 0, "[]\n"},
		{"validate a bad one", []string{"config", "validate", bad}, 78, ""},
		{"validate none", []string{"config", "validate", filepath.Join(dir, "none.hcl")}, 78, ""},
		{"format a good one", []string{"config", "fmt", good}, 0, ""},
		{"check a bad style", []string{"config", "fmt", "-check", ugly}, 1, ugly + "\n"},
		{"format a bad style", []string{"config", "fmt", ugly}, 0, ugly + "\n"},
		{"check it again", []string{"config", "fmt", "-check", ugly}, 0, ""},
		{"format what cannot be read", []string{"config", "fmt", broken}, 78, ""},
		{"show a bad one", []string{"config", "show", bad}, 78, ""},
		{"two files", []string{"config", "validate", good, bad}, 2, ""},
		{"a file twice", []string{"config", "validate", good, "-config", bad}, 2, ""},
		{"the group alone", []string{"config"}, 2, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			code, stdout, stderr := noria(t, c.args...)
			if code != c.code || stdout != c.stdout || (code != 0) != (stderr != "") {
				t.Errorf("exit %d, want %d: %q %q", code, c.code, stdout, stderr)
			}
		})
	}
	put(t, ugly, "listen {\naddress=\"127.0.0.1:4600\"\n}\n", 0o600)
	link := filepath.Join(dir, "link.hcl")
	if err := os.Symlink(ugly, link); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := noria(t, "config", "fmt", link)
	if info, err := os.Lstat(link); code != 0 || err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("a link became %v %v: exit %d %q", info.Mode(), err, code, stderr)
	}
	if code, _, _ := noria(t, "config", "fmt", "-check", ugly); code != 0 {
		t.Error("what a link leads to was not formatted")
	}
	_, stdout, _ := noria(t, "config", "validate", "-json", bad)
	var found config.Diagnostics
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || len(found) != 1 || found[0].Range.StartLine != 2 {
		t.Errorf("as JSON: %v %q", err, stdout)
	}
	if _, stdout, _ := noria(t, "config", "show", good); !strings.Contains(stdout, `refresh = "45s"`) {
		t.Errorf("defaults are not shown: %q", stdout)
	}
}

// describing is an executable that can say what it is, and nothing else.
const describing = `#!/bin/sh
[ "$1" = describe ] || exit 9
echo '{"name":"acme","version":"1.2.3","sdkVersion":"","provider":"acme","services":["noria.plugin.v1.Plugin","noria.provider.v1.Provider"],"accountSchema":{"attributes":[{"name":"token","type":"ATTRIBUTE_TYPE_STRING","sensitive":true,"doc":"the token"}]}}'
`

func TestPluginsAreSeenWithoutADaemon(t *testing.T) {
	dir := inPrivateHome(t)
	path := put(t, filepath.Join(dir, "noria-provider-acme"), describing, 0o755)
	write := func(pin string) string {
		return put(t, filepath.Join(dir, "noria.hcl"), fmt.Sprintf(
			"plugin \"acme\" {\n  path = \"noria-provider-acme\"\n%s}\nprovider \"acme\" {\n  account \"a\" {}\n  account \"b\" { enabled = false }\n}\n", pin), 0o600)
	}
	// A plugin that is not pinned yet can be pinned: that the configuration has an error is no hindrance.
	file := write("")
	if code, _, _ := noria(t, "plugins", "verify", "-config", file); code != 1 {
		t.Errorf("verify of an unpinned plugin: exit %d", code)
	}
	code, pin, stderr := noria(t, "plugins", "pin", "acme", "-config", file)
	if code != 0 || !strings.HasPrefix(pin, `sha256 = "`) {
		t.Fatalf("exit %d %q %q", code, pin, stderr)
	}
	if _, same, _ := noria(t, "plugins", "pin", path); same != pin {
		t.Errorf("by path it is %q, by name %q", same, pin)
	}
	file = write(pin)
	code, stdout, stderr := noria(t, "plugins", "-strict", "-config", file)
	if fields := strings.Fields(strings.Split(stdout+"\n", "\n")[1]); code != 0 || len(fields) < 10 || fields[2] != "1.2.3" || fields[4] != "offline" || fields[8] != "1" {
		t.Errorf("exit %d %q %q", code, stdout, stderr)
	}
	if code, stdout, _ := noria(t, "plugins", "info", "acme", "-config", file); code != 0 || !strings.Contains(stdout, "the token") {
		t.Errorf("exit %d %q", code, stdout)
	}
	if code, _, _ := noria(t, "plugins", "verify", "acme", "-config", file); code != 0 {
		t.Errorf("verify of a pinned plugin: exit %d", code)
	}

	put(t, path, describing+"# changed\n", 0o755)
	code, stdout, _ = noria(t, "plugins", "list", "-strict", "-config", file)
	if code != 2 || !strings.Contains(stdout, "mismatch") || !strings.Contains(stdout, "pin it again") {
		t.Errorf("a changed executable: exit %d %q", code, stdout)
	}
	if code, _, _ := noria(t, "plugins", "list", "-config", file); code != 0 {
		t.Errorf("without -strict: exit %d", code)
	}
	if code, stdout, _ := noria(t, "plugins", "verify", "-json", "-config", file); code != 1 || !strings.Contains(stdout, `"digest": "mismatch"`) {
		t.Errorf("exit %d %q", code, stdout)
	}
}

func TestSimulateComparesWithTheTrace(t *testing.T) {
	inPrivateHome(t)
	trace, err := os.ReadFile("testdata/trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := noria(t, "simulate", "testdata/trace.jsonl")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d %q", code, stderr)
	}
	golden(t, "simulate", stdout)
	p := &cli.Program{Stdin: strings.NewReader(string(trace))}
	if code, same, _ := noriaWith(t, p, "simulate", "-"); code != 0 || same != stdout {
		t.Errorf("from standard input: exit %d %q", code, same)
	}
	p = &cli.Program{Stdin: strings.NewReader(string(trace))}
	if code, served, _ := noriaWith(t, p, "simulate", "-serve"); code != 0 || served != stdout {
		t.Errorf("one by one: exit %d %q", code, served)
	}
	p = &cli.Program{Stdin: strings.NewReader(strings.ReplaceAll(string(trace), `"kind":"exact"`, `"kind":"unknown"`))}
	if code, _, stderr := noriaWith(t, p, "simulate", "-"); code != 1 || !strings.Contains(stderr, "2 of 3 decisions differ") {
		t.Errorf("another decision than the trace's: exit %d %q", code, stderr)
	}
}

func TestDoctorNamesProblemsAndRemedies(t *testing.T) {
	type finding struct{ Check, Result, Detail, Remedy string }
	examine := func(t *testing.T, file string) (code int, found map[string]finding) {
		t.Helper()
		code, stdout, stderr := noria(t, "doctor", "-json", "-config", file)
		var findings []finding
		if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
			t.Fatalf("%v %q %q", err, stdout, stderr)
		}
		found = map[string]finding{}
		for _, f := range findings {
			found[f.Check] = f
			if f.Result != "ok" && f.Remedy == "" {
				t.Errorf("%s has no remedy: %s", f.Check, f.Detail)
			}
		}
		return code, found
	}
	t.Run("nothing wrong but the daemon is not running", func(t *testing.T) {
		dir := inPrivateHome(t)
		file := put(t, filepath.Join(dir, "noria.hcl"), "listen {\n  address = \"127.0.0.1:0\"\n}\n", 0o600)
		code, found := examine(t, file)
		if code != 0 || found["daemon"].Result != "warning" || found["address"].Result != "ok" || found["configuration"].Result != "ok" {
			t.Errorf("exit %d %+v", code, found)
		}
	})
	t.Run("files open to others and a broken configuration", func(t *testing.T) {
		dir := inPrivateHome(t)
		file := put(t, filepath.Join(dir, "noria.hcl"), "log {\n  level = \"loud\"\n}\n", 0o600)
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
		key := put(t, filepath.Join(dir, "home", ".local", "state", "noria", "client.key"), "made-up", 0o600)
		if err := os.Chmod(key, 0o644); err != nil {
			t.Fatal(err)
		}
		code, found := examine(t, file)
		for _, check := range []string{"configuration", "configuration file", "client key"} {
			if found[check].Result != "problem" {
				t.Errorf("%s: %+v", check, found[check])
			}
		}
		if code != 1 {
			t.Errorf("exit %d", code)
		}
	})
	t.Run("a running daemon with troubles", func(t *testing.T) {
		dir := inPrivateHome(t)
		serve(t, &fakeDaemon{})
		file := put(t, filepath.Join(dir, "noria.hcl"), "", 0o600)
		code, found := examine(t, file)
		for check, want := range map[string]string{
			"daemon": "ok", "journal": "ok", "adapter claude": "ok", "adapter acme": "problem", "adapter mine": "warning",
			"account claude/work": "ok", "account claude/personal": "problem", "account codex/ci": "ok",
		} {
			if found[check].Result != want {
				t.Errorf("%s is %s, want %s: %+v", check, found[check].Result, want, found[check])
			}
		}
		if code != 1 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestStateMovesBetweenMachines(t *testing.T) {
	dir := inPrivateHome(t)
	d := &fakeDaemon{}
	serve(t, d)
	file := filepath.Join(dir, "bindings.json")
	if code, stdout, stderr := noria(t, "state", "export", file); code != 0 || stdout+stderr != "" {
		t.Errorf("exit %d %q %q", code, stdout, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the export: %v %v", info, err)
	}
	code, stdout, _ := noria(t, "state", "import", file)
	if code != 0 || stdout != "1 binding added, 2 kept because this machine has a newer one.\n" {
		t.Errorf("exit %d %q", code, stdout)
	}
	if !slices.Contains(d.noted(), `import {"bindings":[]}`) {
		t.Errorf("the daemon got %q", d.noted())
	}
	if code, _, stderr := noria(t, "state", "import", filepath.Join(dir, "none")); code != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d %q", code, stderr)
	}
	p := &cli.Program{Stdin: strings.NewReader("{")}
	if code, _, stderr := noriaWith(t, p, "state", "import"); code != 2 || !strings.Contains(stderr, "no JSON") {
		t.Errorf("exit %d %q", code, stderr)
	}
}
