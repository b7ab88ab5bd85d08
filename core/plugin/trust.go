package plugin

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/noria-dev/noria/core/internal/owner"
)

// maxExecutable bounds what is read of an executable.
const maxExecutable = 512 << 20

// trusted opens the executable of a spec after checking where it lies and who could have changed it. The checks of the
// file itself are made on the open descriptor, which is also what gets copied.
func (c *Catalog) trusted(spec Spec) (*os.File, *Failure) {
	if !filepath.IsAbs(spec.Path) {
		return nil, untrusted("path of the executable is not absolute")
	}
	resolved, err := filepath.EvalSymlinks(spec.Path)
	if err != nil {
		return nil, &Failure{Reason: ReasonNotFound, Detail: "no executable at the configured path", Permanent: true}
	}
	top, f := c.containment(spec, resolved)
	if f != nil {
		return nil, f
	}
	if f := checkDirectories(filepath.Dir(resolved), top); f != nil {
		return nil, f
	}
	file, err := os.OpenFile(resolved, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &Failure{Reason: ReasonNotFound, Detail: "executable cannot be read", Permanent: true}
	}
	if f := c.checkFile(file, spec.Bundled); f != nil {
		_ = file.Close()
		return nil, f
	}
	return file, nil
}

// containment refuses links that lead out of the directory that the path names, and returns the topmost directory whose
// mode matters.
func (c *Catalog) containment(spec Spec, resolved string) (top string, f *Failure) {
	switch {
	case spec.Bundled:
		if filepath.Dir(resolved) != c.bundledDir {
			return "", untrusted("bundled adapter is not beside the daemon's executable")
		}
		return c.bundledDir, nil
	case c.pluginDir != "" && within(spec.Path, c.options.PluginDir):
		if !within(resolved, c.pluginDir) {
			return "", untrusted("link leads out of the plugin directory")
		}
		return c.pluginDir, nil
	}
	info, err := os.Lstat(spec.Path)
	if err != nil || info.Mode().Type() == fs.ModeSymlink {
		return "", untrusted("path of the executable is a link")
	}
	return filepath.Dir(resolved), nil
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkDirectories looks at dir and everything above it. Below top nobody else may write; above it a directory where
// everybody may write must at least be sticky, so that nobody can replace what is in it.
func checkDirectories(dir, top string) *Failure {
	inside := true
	for {
		info, err := os.Lstat(dir)
		if err != nil {
			return untrusted("directory of the executable cannot be read")
		}
		if f := judgeDirectory(info, inside); f != nil {
			return f
		}
		if dir == top {
			inside = false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		dir = parent
	}
}

func judgeDirectory(info fs.FileInfo, inside bool) *Failure {
	sticky := info.Mode()&fs.ModeSticky != 0
	switch {
	case writableByOthers(info) && (inside || !sticky):
		return untrusted("directory of the executable is writable by others")
	case !ownedByUsOrRoot(info):
		return untrusted("directory of the executable belongs to somebody else")
	}
	return nil
}

func (c *Catalog) checkFile(file *os.File, bundled bool) *Failure {
	info, err := file.Stat()
	if err != nil {
		return untrusted("executable cannot be examined")
	}
	return c.judgeFile(info, bundled)
}

func (c *Catalog) judgeFile(info fs.FileInfo, bundled bool) *Failure {
	switch {
	case !info.Mode().IsRegular():
		return untrusted("executable is not a regular file")
	case info.Size() > maxExecutable:
		return untrusted("executable is larger than 512 MiB")
	case writableByOthers(info):
		return untrusted("executable is writable by others")
	case info.Mode()&0o111 == 0:
		return untrusted("file is not executable")
	case bundled && owner.Of(info) != c.bundledOwner:
		return untrusted("bundled adapter has another owner than the daemon's executable")
	case !bundled && !ownedByUsOrRoot(info):
		return untrusted("executable belongs to somebody else")
	}
	return nil
}

func untrusted(detail string) *Failure {
	return &Failure{Reason: ReasonUntrustedFile, Detail: detail, Permanent: true}
}

// writableByOthers is true when somebody beside the owner may write. A group that has its owner's number is the owner's
// private one, which many systems make writable by default.
func writableByOthers(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	if mode&0o002 != 0 {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return mode&0o020 != 0 && (!ok || stat.Gid != stat.Uid)
}

func ownedByUsOrRoot(info fs.FileInfo) bool {
	return owner.Ours(info) || owner.Of(info) == 0
}

// Source is how lists name where a plugin comes from. It looks at no file.
func (c *Catalog) Source(spec Spec) string {
	if spec.Bundled {
		return "bundled"
	}
	if rel, err := filepath.Rel(c.options.PluginDir, spec.Path); err == nil && filepath.IsLocal(rel) && c.options.PluginDir != "" {
		return filepath.Join(filepath.Base(c.options.PluginDir), rel)
	}
	return spec.Path
}

// privateDir makes sure that dir is a directory of ours alone, and returns its path without links.
func privateDir(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("use directory %q: not absolute", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("resolve directory: %w", err)
	}
	if err := owner.MakePrivate(resolved); err != nil {
		return "", err
	}
	return resolved, nil
}

// limited reads at most maxExecutable bytes of a file that grows while it is read.
func limited(r io.Reader) io.Reader { return io.LimitReader(r, maxExecutable) }

// cleanDigest reads a digest as a person writes it.
func cleanDigest(s string) string {
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "sha256:")
}
