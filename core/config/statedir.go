package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/internal/owner"
)

// stateProblem is why a directory cannot hold state, and what to do about it, in sentences.
type stateProblem struct{ what, remedy string }

const ownDirectory = "Set state.dir to a directory of your own; a missing one is made."

// CheckState tells why state cannot be kept in state.dir by this user on this machine, nil when nothing speaks against it.
// It touches nothing: a directory that is missing is made by the daemon. Other than what Parse finds, its answer depends on
// who asks.
func (f *File) CheckState() Diagnostics {
	problem := examineState(f.State.Dir)
	if problem == nil {
		return nil
	}
	return f.StateProblem(problem.what, problem.remedy)
}

// StateProblem is an error about state.dir at the line where it is set. Both texts are sentences.
func (f *File) StateProblem(what, remedy string) Diagnostics {
	d := Diagnostic{Severity: SeverityError, Summary: "State directory cannot be used", Detail: fmt.Sprintf("state.dir is %s. %s %s", f.State.Dir, what, remedy)}
	if f.stateDir != nil {
		d.Range, d.Snippet = f.place(*f.stateDir)
	}
	return Diagnostics{d}
}

// examineState is nil for a directory that is fit, or can be made.
func examineState(dir string) *stateProblem {
	info, err := os.Lstat(dir)
	if err != nil {
		return examineParent(dir, err)
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return &stateProblem{"It is a symbolic link.", "Set state.dir to the directory that it leads to."}
	case !info.IsDir():
		return &stateProblem{"It is no directory.", ownDirectory}
	case !owner.Ours(info):
		return &stateProblem{fmt.Sprintf("It belongs to another user (uid %d).", owner.Of(info)), "Run noria as that user, or set another state.dir."}
	case info.Mode().Perm()&0o077 != 0:
		return &stateProblem{fmt.Sprintf("It is open to others (mode %04o).", info.Mode().Perm()),
			"Look at what is in it, then run: chmod 700 " + dir}
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return &stateProblem{fmt.Sprintf("It cannot be written: %v.", err), "Make it writable for this user, or set another state.dir."}
	}
	return nil
}

// examineParent tells why a directory that is missing cannot be made.
func examineParent(dir string, err error) *stateProblem {
	above := dir
	for err != nil && filepath.Dir(above) != above {
		above = filepath.Dir(above)
		var info fs.FileInfo
		if info, err = os.Stat(above); err == nil && !info.IsDir() {
			return &stateProblem{above + " is no directory, so nothing can be made in it.", ownDirectory}
		}
	}
	if err == nil {
		err = unix.Access(above, unix.W_OK|unix.X_OK)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EROFS):
		return &stateProblem{"It is missing, and " + above + " is on a read-only file system.", "Mount that writable, or set another state.dir."}
	case errors.Is(err, fs.ErrPermission):
		return &stateProblem{"It is missing, and this user may not make it in " + above + ".", ownDirectory}
	}
	return &stateProblem{fmt.Sprintf("It cannot be made in %s: %v.", above, cause(err)), ownDirectory}
}

// socketsFit complains about a state directory below which no socket can have its name.
func (f *File) socketsFit(dir string) {
	run := resolved(runDir(dir))
	if len(run) <= maxRunDir {
		return
	}
	if dir != defaultStateDir() || runtimeDir() == "" {
		f.fail(f.stateDir, "Path of the sockets too long",
			"Sockets are made in %s, which has %d bytes; %d leave room for their names. Set state.dir to a path that is shorter by %d.",
			run, len(run), maxRunDir, len(run)-maxRunDir)
		return
	}
	f.fail(nil, "Path of the sockets too long",
		"Sockets are made in %s, which has %d bytes; %d leave room for their names. Set XDG_RUNTIME_DIR to a shorter path.",
		run, len(run), maxRunDir)
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}
