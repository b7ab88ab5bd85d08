package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/config"
)

func TestStateDirectoriesThatCannotServeAreFoundBeforeTheyAreTouched(t *testing.T) {
	unwritable := "It cannot be written: permission denied. Make it writable"
	closed := "It is missing, and this user may not make it in DIR/closed. Set state.dir to"
	if os.Geteuid() == 0 {
		unwritable, closed = "", "" // modes do not bind root
	}
	for _, c := range []struct {
		rule string
		// prepare gives state.dir.
		prepare func(t *testing.T, dir string) string
		says    string // empty: nothing speaks against it
	}{
		{"a private directory", func(t *testing.T, dir string) string { return made(t, filepath.Join(dir, "state"), 0o700) }, ""},
		{"one that may not be written", func(t *testing.T, dir string) string { return made(t, filepath.Join(dir, "state"), 0o500) }, unwritable},
		{"a missing one", func(_ *testing.T, dir string) string { return filepath.Join(dir, "a", "b") }, ""},
		{"one that is open to others", func(t *testing.T, dir string) string { return made(t, filepath.Join(dir, "state"), 0o777) },
			"It is open to others (mode 0777). Look at what is in it, then run: chmod 700 DIR/state"},
		{"a file", func(t *testing.T, dir string) string { return file(t, filepath.Join(dir, "state")) }, "It is no directory. Set state.dir to"},
		{"below a file", func(t *testing.T, dir string) string {
			return filepath.Join(file(t, filepath.Join(dir, "f")), "a", "state")
		},
			"DIR/f is no directory, so nothing can be made in it. Set state.dir to"},
		{"a link", func(t *testing.T, dir string) string {
			if err := os.Symlink(made(t, filepath.Join(dir, "real"), 0o700), filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "link")
		}, "It is a symbolic link. Set state.dir to the directory that it leads to."},
		{"below a directory that is closed to all but root", func(t *testing.T, dir string) string {
			return filepath.Join(made(t, filepath.Join(dir, "closed"), 0o500), "state")
		}, closed},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inPrivateHome(t)
			dir, err := os.MkdirTemp("", "ns-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			state := c.prepare(t, dir)
			parsed, found := config.Parse(write(t, fmt.Sprintf("state {\n  dir = %q\n}\n", state)))
			if found.HasErrors() {
				t.Fatal(found)
			}
			before := listing(t, dir)
			got := parsed.CheckState()
			if c.says == "" && got != nil {
				t.Errorf("found %v", got)
			}
			if want := strings.ReplaceAll(c.says, "DIR", dir); want != "" && (len(got) != 1 || !strings.Contains(got[0].Detail, want) || got[0].Range.StartLine != 2) {
				t.Errorf("found %v, want %q", got, want)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("it was touched:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func made(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.Mkdir(path, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil {
			fmt.Fprintln(&all, path, entry.Type())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
