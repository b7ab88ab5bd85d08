package owner_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/internal/owner"
)

// file is one of the user with that number.
type file struct {
	fs.FileInfo
	uid int
}

func (f file) Sys() any { return &syscall.Stat_t{Uid: uint32(f.uid)} }

func TestAFileIsOursByItsOwner(t *testing.T) {
	us := os.Geteuid()
	if !owner.Ours(file{uid: us}) || owner.Ours(file{uid: us + 1}) || owner.Of(file{uid: 7}) != 7 {
		t.Error("the owner is another one")
	}
}

func TestMakePrivate(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(path string) error
		err     string
	}{
		"missing":        {func(string) error { return nil }, ""},
		"private":        {func(path string) error { return os.Mkdir(path, 0o700) }, ""},
		"open to others": {func(path string) error { return os.Mkdir(path, 0o755) }, "it is open to others; run chmod 700 on it"},
		"a file":         {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "not a directory"},
		"a link":         {func(path string) error { return os.Symlink(t.TempDir(), path) }, "it is no directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			if err := c.prepare(dir); err != nil {
				t.Fatal(err)
			}
			err := owner.MakePrivate(dir)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if info, err := os.Stat(dir); c.err == "" && (err != nil || info.Mode().Perm() != 0o700) {
				t.Errorf("the directory is %v, %v", info, err)
			}
		})
	}
}
