package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// pluginsOnDisk writes executables in every condition in which a daemon can find one, and a configuration that names them.
func pluginsOnDisk(t *testing.T) (dir, config string) {
	t.Helper()
	dir = inPrivateHome(t)
	text := "plugin_dir = \"plugins\"\n"
	add := func(name, executable string, mode os.FileMode, attributes string) {
		path := filepath.Join(dir, "plugins", "noria-provider-"+name)
		if executable != "" {
			put(t, path, strings.ReplaceAll(executable, `"acme"`, fmt.Sprintf("%q", name)), mode)
			if err := os.Chmod(path, mode); err != nil { // whatever the umask
				t.Fatal(err)
			}
		}
		if attributes == "pinned" {
			_, pin, _ := noria(t, "plugins", "pin", path)
			attributes = pin
		}
		text += fmt.Sprintf("plugin %q {\n  path = \"plugins/noria-provider-%s\"\n%s}\nprovider %q {\n  account \"a\" {}\n}\n", name, name, attributes, name)
	}
	add("acme", describing, 0o755, "pinned")
	add("changed", describing, 0o755, "sha256 = \""+strings.Repeat("0", 64)+"\"\n")
	add("mine", describing, 0o755, "dev = true\n")
	add("gone", "", 0, "dev = true\n")
	add("open", describing, 0o777, "dev = true\n")
	add("mute", "#!/bin/sh\nexit 3\n", 0o755, "dev = true\n")
	add("unpinned", describing, 0o755, "")
	return dir, put(t, filepath.Join(dir, "noria.hcl"), text, 0o600)
}

func TestTablesOfPluginsWithoutADaemon(t *testing.T) {
	dir, config := pluginsOnDisk(t)
	for _, c := range []struct {
		golden string
		args   []string
		code   int
	}{
		{"plugins-offline", []string{"plugins", "list"}, 0},
		{"plugins-offline", []string{"plugins", "list", "-strict"}, 2},
		{"plugin-offline", []string{"plugins", "info", "acme"}, 0},
		{"plugins-verify", []string{"plugins", "verify"}, 1},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, stdout, stderr := noria(t, append(c.args, "-config", config)...)
			if code != c.code || stderr != "" {
				t.Errorf("exit %d, want %d: %s", code, c.code, stderr)
			}
			golden(t, c.golden, strings.ReplaceAll(stdout, dir, "/home/dev"))
		})
	}
}

func TestPluginsHaveJSONWithAndWithoutADaemon(t *testing.T) {
	check := func(t *testing.T, code int, args ...string) {
		t.Helper()
		got, stdout, stderr := noria(t, args...)
		if got != code || stderr != "" || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: exit %d, want %d: %q %q", args, got, code, stdout, stderr)
		}
	}
	_, config := pluginsOnDisk(t)
	check(t, 0, "plugins", "list", "-json", "-config", config)
	check(t, 2, "plugins", "list", "-json", "-strict", "-config", config)
	check(t, 0, "plugins", "info", "acme", "-json", "-config", config)
	check(t, 1, "plugins", "verify", "-json", "-config", config)
	check(t, 0, "plugins", "pin", "acme", "-json", "-config", config)
	serve(t, &fakeDaemon{})
	check(t, 0, "plugins", "list", "-json")
	check(t, 2, "plugins", "-json", "-strict")
	check(t, 0, "plugins", "info", "acme", "-json")
}

func TestNothingOfAnAdapterReachesTheTerminalRaw(t *testing.T) {
	inPrivateHome(t)
	serve(t, &fakeDaemon{hostile: true})
	for _, args := range [][]string{{"plugins"}, {"plugins", "info", "acme"}, {"plugins", "restart", "\x1b[2J"}} {
		_, stdout, stderr := noria(t, args...)
		for _, r := range stdout + stderr {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q prints %U", args, r)
				break
			}
		}
	}
}
