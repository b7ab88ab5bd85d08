package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shelf is a catalog with its directories.
type shelf struct {
	t       *testing.T
	catalog *Catalog
	bundled string
	plugins string
	outside string
	cache   string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	dir := t.TempDir()
	s := &shelf{t: t, bundled: filepath.Join(dir, "bin"), plugins: filepath.Join(dir, "plugins"),
		outside: filepath.Join(dir, "outside"), cache: filepath.Join(dir, "cache")}
	for _, d := range []string{s.bundled, s.plugins, s.outside} {
		must(t, os.Mkdir(d, 0o755))
	}
	var err error
	s.catalog, err = NewCatalog(CatalogOptions{BundledDir: s.bundled, PluginDir: s.plugins, CacheDir: s.cache})
	must(t, err)
	return s
}

const quietScript = "#!/bin/sh\nexit 0\n"

// file writes an executable.
func (s *shelf) file(dir, name string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(dir, name)
	must(s.t, os.WriteFile(path, []byte(quietScript), 0o600))
	must(s.t, os.Chmod(path, mode))
	return path
}

func (s *shelf) link(target, dir, name string) string {
	s.t.Helper()
	path := filepath.Join(dir, name)
	must(s.t, os.Symlink(target, path))
	return path
}

func (s *shelf) open(dir string, mode os.FileMode) {
	s.t.Helper()
	must(s.t, os.Chmod(dir, mode))
}

func TestExecutableIsTrusted(t *testing.T) {
	pin := func(path string) Spec { return Spec{Path: path, SHA256: digestOfText(quietScript)} }
	cases := []struct {
		name   string
		make   func(*shelf) Spec
		reason Reason
	}{
		{"in the plugin directory and pinned", func(s *shelf) Spec { return pin(s.file(s.plugins, "p", 0o755)) }, ""},
		{"pinned in capitals and with a prefix", func(s *shelf) Spec {
			spec := pin(s.file(s.plugins, "p", 0o755))
			spec.SHA256 = " SHA256:" + strings.ToUpper(spec.SHA256)
			return spec
		}, ""},
		{"elsewhere by its whole path", func(s *shelf) Spec { return pin(s.file(s.outside, "p", 0o755)) }, ""},
		{"a link within the plugin directory", func(s *shelf) Spec {
			return pin(s.link(s.file(s.plugins, "p-1.0", 0o755), s.plugins, "p"))
		}, ""},
		{"bundled without a pin", func(s *shelf) Spec { return Spec{Path: s.file(s.bundled, "noria-provider-p", 0o755), Bundled: true} }, ""},
		{"dev without a pin", func(s *shelf) Spec { return Spec{Path: s.file(s.plugins, "p", 0o755), Dev: true} }, ""},
		{"dev with an old pin", func(s *shelf) Spec {
			return Spec{Path: s.file(s.plugins, "p", 0o755), Dev: true, SHA256: digestOfText("old")}
		}, ""},

		{"not pinned", func(s *shelf) Spec { return Spec{Path: s.file(s.plugins, "p", 0o755)} }, ReasonUnpinned},
		{"changed since it was pinned", func(s *shelf) Spec {
			return Spec{Path: s.file(s.plugins, "p", 0o755), SHA256: digestOfText("old")}
		}, ReasonDigestMismatch},
		{"bundled but pinned to another", func(s *shelf) Spec {
			return Spec{Path: s.file(s.bundled, "noria-provider-p", 0o755), Bundled: true, SHA256: digestOfText("old")}
		}, ReasonDigestMismatch},
		{"missing", func(s *shelf) Spec { return pin(filepath.Join(s.plugins, "none")) }, ReasonNotFound},
		{"not readable as a file", func(s *shelf) Spec { return pin(s.plugins) }, ReasonUntrustedFile},
		{"relative path", func(*shelf) Spec { return pin("plugins/p") }, ReasonUntrustedFile},
		{"a link out of the plugin directory", func(s *shelf) Spec {
			return pin(s.link(s.file(s.outside, "p", 0o755), s.plugins, "p"))
		}, ReasonUntrustedFile},
		{"below a link out of the plugin directory", func(s *shelf) Spec {
			s.file(s.outside, "p", 0o755)
			return pin(filepath.Join(s.link(s.outside, s.plugins, "sub"), "p"))
		}, ReasonUntrustedFile},
		{"a link elsewhere", func(s *shelf) Spec {
			return pin(s.link(s.file(s.outside, "p-1.0", 0o755), s.outside, "p"))
		}, ReasonUntrustedFile},
		{"dots out of the plugin directory", func(s *shelf) Spec {
			return pin(s.plugins + "/../outside/../outside/" + filepath.Base(s.link(s.file(s.outside, "q", 0o755), s.outside, "p")))
		}, ReasonUntrustedFile},
		{"file writable by all", func(s *shelf) Spec { return pin(s.file(s.plugins, "p", 0o757)) }, ReasonUntrustedFile},
		{"dev does not waive modes", func(s *shelf) Spec { return Spec{Path: s.file(s.plugins, "p", 0o757), Dev: true} }, ReasonUntrustedFile},
		{"file that cannot be executed", func(s *shelf) Spec { return pin(s.file(s.plugins, "p", 0o644)) }, ReasonUntrustedFile},
		{"directory writable by all", func(s *shelf) Spec { s.open(s.plugins, 0o777); return pin(s.file(s.plugins, "p", 0o755)) }, ReasonUntrustedFile},
		{"directory writable by all, sticky or not", func(s *shelf) Spec {
			s.open(s.plugins, 0o777|os.ModeSticky)
			return pin(s.file(s.plugins, "p", 0o755))
		}, ReasonUntrustedFile},
		{"directory above writable by all", func(s *shelf) Spec {
			s.open(filepath.Dir(s.plugins), 0o777)
			return pin(s.file(s.plugins, "p", 0o755))
		}, ReasonUntrustedFile},
		{"bundled, but not beside the daemon", func(s *shelf) Spec { return Spec{Path: s.file(s.plugins, "p", 0o755), Bundled: true} }, ReasonUntrustedFile},
		{"bundled, but a link to elsewhere", func(s *shelf) Spec {
			return Spec{Path: s.link(s.file(s.outside, "p", 0o755), s.bundled, "noria-provider-p"), Bundled: true}
		}, ReasonUntrustedFile},
		{"bundled and writable by all", func(s *shelf) Spec { return Spec{Path: s.file(s.bundled, "p", 0o757), Bundled: true} }, ReasonUntrustedFile},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			spec := c.make(s)
			path, digest, _, f := s.catalog.verified(spec)
			if c.reason == "" {
				if f != nil {
					t.Fatalf("refused: %v", f)
				}
				if digest != digestOfText(quietScript) || path != filepath.Join(s.catalog.cache.dir, digest) {
					t.Errorf("copy %s of digest %s", path, digest)
				}
			} else if f == nil || f.Reason != c.reason || !f.Permanent {
				t.Fatalf("got %v, want %s for good", f, c.reason)
			}
			// Looking is the same as starting.
			var seen *Failure
			errors.As(s.catalog.Verify(spec).Err, &seen)
			if (seen == nil) != (f == nil) || seen != nil && seen.Reason != f.Reason {
				t.Errorf("verify: %v, start: %v", seen, f)
			}
		})
	}
}

func digestOfText(text string) string {
	digest, _ := digestOf(strings.NewReader(text))
	return digest
}

// owned is what is known of a file that may be somebody else's.
type owned struct {
	mode     fs.FileMode
	uid, gid uint32
}

func (owned) Name() string             { return "" }
func (owned) Size() int64              { return 0 }
func (o owned) Mode() fs.FileMode      { return o.mode }
func (owned) ModTime() time.Time       { return time.Time{} }
func (o owned) IsDir() bool            { return o.mode.IsDir() }
func (o owned) Sys() any               { return &syscall.Stat_t{Uid: o.uid, Gid: o.gid} }
func (o owned) String() string         { return fmt.Sprintf("%v of %d:%d", o.mode, o.uid, o.gid) }
func (o owned) by(uid uint32) owned    { o.uid, o.gid = uid, uid; return o }
func (o owned) group(gid uint32) owned { o.gid = gid; return o }

func TestWhoCouldHaveChangedAFileOrDirectory(t *testing.T) {
	us := uint32(os.Getuid())
	const root, other = 0, 12345
	file := func(mode fs.FileMode) owned { return owned{mode: mode}.by(us) }
	dir := func(mode fs.FileMode) owned { return owned{mode: fs.ModeDir | mode}.by(us) }
	c := &Catalog{bundledOwner: int(us)}
	plain := func(o owned) *Failure { return c.judgeFile(o, false) }
	bundled := func(o owned) *Failure { return c.judgeFile(o, true) }
	inside := func(o owned) *Failure { return judgeDirectory(o, true) }
	above := func(o owned) *Failure { return judgeDirectory(o, false) }
	for _, test := range []struct {
		what  string
		judge func(owned) *Failure
		of    owned
		ok    bool
	}{
		{"file", plain, file(0o755), true},
		{"file of root", plain, file(0o755).by(root), true},
		{"file of another", plain, file(0o755).by(other), false},
		{"file for the owner's group", plain, file(0o775), true},
		{"file for a shared group", plain, file(0o775).group(us + 1), false},
		{"file for all", plain, file(0o757), false},
		{"file that cannot be run", plain, file(0o644), false},
		{"directory instead of a file", plain, dir(0o755), false},
		{"bundled", bundled, file(0o755), true},
		{"bundled of another", bundled, file(0o755).by(other), false},
		{"directory", inside, dir(0o755), true},
		{"directory of root", inside, dir(0o755).by(root), true},
		{"directory of another", inside, dir(0o755).by(other), false},
		{"directory for the owner's group", inside, dir(0o775), true},
		{"directory for a shared group", inside, dir(0o775).group(us + 1), false},
		{"directory for all", inside, dir(0o777), false},
		{"sticky directory for all", inside, dir(0o777 | fs.ModeSticky), false},
		{"directory above for all", above, dir(0o777), false},
		{"sticky directory above for all", above, dir(0o777 | fs.ModeSticky).by(root), true},
		{"sticky directory above of another", above, dir(0o777 | fs.ModeSticky).by(other), false},
	} {
		if f := test.judge(test.of); (f == nil) != test.ok || f != nil && f.Reason != ReasonUntrustedFile {
			t.Errorf("%s, %s: %v", test.what, test.of, f)
		}
	}
}

func TestWhatWasVerifiedIsWhatIsExecuted(t *testing.T) {
	s := newShelf(t)
	path := s.file(s.plugins, "p", 0o755)
	spec := Spec{Path: path, SHA256: digestOfText(quietScript)}
	copied, _, _, f := s.catalog.verified(spec)
	if f != nil {
		t.Fatal(f)
	}
	must(t, os.WriteFile(path, []byte("#!/bin/sh\necho changed\n"), 0o755))
	got, err := os.ReadFile(copied)
	must(t, err)
	if string(got) != quietScript {
		t.Errorf("copy holds %q", got)
	}
	info, err := os.Stat(copied)
	must(t, err)
	if info.Mode().Perm() != 0o500 {
		t.Errorf("mode of the copy %v", info.Mode())
	}
}

func TestCopyThatWasTamperedWithIsReplaced(t *testing.T) {
	s := newShelf(t)
	spec := Spec{Path: s.file(s.plugins, "p", 0o755), SHA256: digestOfText(quietScript)}
	copied, _, _, f := s.catalog.verified(spec)
	if f != nil {
		t.Fatal(f)
	}
	must(t, os.Chmod(copied, 0o700))
	must(t, os.WriteFile(copied, []byte("#!/bin/sh\necho evil\n"), 0o700))
	if copied, _, _, f = s.catalog.verified(spec); f != nil {
		t.Fatal(f)
	}
	if got, err := os.ReadFile(copied); err != nil || string(got) != quietScript {
		t.Errorf("copy holds %q, %v", got, err)
	}
}

func TestRefusedExecutableLeavesNoCopy(t *testing.T) {
	s := newShelf(t)
	spec := Spec{Path: s.file(s.plugins, "p", 0o755), SHA256: digestOfText("old")}
	if _, _, _, f := s.catalog.verified(spec); f == nil {
		t.Fatal("accepted")
	}
	if entries, _ := os.ReadDir(s.cache); len(entries) != 0 {
		t.Errorf("cache holds %v", entries)
	}
}

func TestCacheIsSweptOfWhatIsOld(t *testing.T) {
	s := newShelf(t)
	now := time.Now()
	old := now.Add(-cacheAge - time.Hour)
	for name, at := range map[string]time.Time{
		digestOfText("new"): now, digestOfText("old"): old, freshPrefix + "old": old, freshPrefix + "new": now, "other": old,
	} {
		path := s.file(s.cache, name, 0o500)
		must(t, os.Chtimes(path, at, at))
	}
	s.catalog.cache.sweep(now)
	for name, want := range map[string]bool{
		digestOfText("new"): true, digestOfText("old"): false, freshPrefix + "old": false, freshPrefix + "new": true, "other": true,
	} {
		if _, err := os.Stat(filepath.Join(s.cache, name)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", name, err == nil, want)
		}
	}
}

func TestBundledAdaptersAreFoundByName(t *testing.T) {
	s := newShelf(t)
	for _, name := range []string{"noria", "noria-provider-zeta", "noria-provider-acme", "noria-provider-BAD", "other"} {
		s.file(s.bundled, name, 0o755)
	}
	specs, err := s.catalog.Bundled()
	must(t, err)
	if len(specs) != 2 || specs[0].Name != "acme" || specs[1].Provider != "zeta" || !specs[1].Bundled {
		t.Errorf("got %+v", specs)
	}
}

func TestPinPrintsTheDigestToConfigure(t *testing.T) {
	s := newShelf(t)
	path := s.file(s.plugins, "p", 0o755)
	digest, err := s.catalog.Pin(path)
	must(t, err)
	if v := s.catalog.Verify(Spec{Path: path, SHA256: digest}); v.Err != nil || v.Digest != DigestOK || v.SHA256 != digest || v.Source != "plugins/p" {
		t.Errorf("got %+v", v)
	}
	if _, err := s.catalog.Pin(s.plugins); err == nil {
		t.Error("a directory has a digest")
	}
}
