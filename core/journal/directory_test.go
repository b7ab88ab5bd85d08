package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// written is a state directory that a run left behind.
func written(t *testing.T) (dir string, im image) {
	t.Helper()
	im = smallImage(t)
	dir = filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, dirMode); err != nil {
		t.Fatal(err)
	}
	for name, data := range im.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, fileMode); err != nil {
			t.Fatal(err)
		}
	}
	return dir, im
}

func TestFilesAreOursAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "state")
	j, o := openIn(t, dir, Limits{RotateEntries: 5})
	for i := range 20 {
		mustBeDurable(t, j, mustWrite(t, j, o, keyOf(i), "1"))
	}
	for path, mode := range map[string]os.FileMode{"../..": 0o700, "..": 0o700, ".": 0o700} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
}

func TestADirectoryThatIsNotOursAloneIsRefused(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string) error{
		"a file": func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) },
		"a symbolic link": func(t *testing.T, path string) error {
			return os.Symlink(t.TempDir(), path)
		},
		"others may read it": func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o750))
		},
		"others may write": func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o702))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := make(t, path); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Options{Dir: path})
			var unsafe *UnsafeError
			if !errors.As(err, &unsafe) || unsafe.Remedy == "" {
				t.Errorf("opened, or for another reason: %v", err)
			}
		})
	}
}

// plants are what may stand in place of a file of ours. None of them is ever read or followed.
func plants() map[string]func(t *testing.T, path string) error {
	return map[string]func(t *testing.T, path string) error{
		"symbolic link": func(t *testing.T, path string) error {
			target := filepath.Join(t.TempDir(), "target")
			return errors.Join(os.Rename(path, target), os.Symlink(target, path))
		},
		"dangling link": func(t *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(t.TempDir(), "nothing"), path))
		},
		"hard link":            func(t *testing.T, path string) error { return os.Link(path, path+".other") },
		"readable by all":      func(_ *testing.T, path string) error { return os.Chmod(path, 0o644) },
		"writable by a group":  func(_ *testing.T, path string) error { return os.Chmod(path, 0o620) },
		"pipe nobody feeds":    func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
		"directory":            func(_ *testing.T, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"huge file":            func(_ *testing.T, path string) error { return os.Truncate(path, 1<<40) },
		"socket":               plantSocket,
		"unreadable beginning": func(_ *testing.T, path string) error { return os.WriteFile(path, make([]byte, 4096), 0o600) },
	}
}

func plantSocket(_ *testing.T, path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := os.Remove(path); err != nil {
		return err
	}
	// The name is bound from inside the directory, because the path may be too long for a socket.
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(short)
	bound := filepath.Join(short, "s")
	return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: bound}), os.Chmod(bound, 0o600), os.Rename(bound, path))
}

func TestAPlantedFileIsNeitherReadNorFollowedAndTheRestServes(t *testing.T) {
	for name, plant := range plants() {
		for _, victim := range []string{"snapshot-3", "journal-3"} {
			t.Run(name+" for "+victim, func(t *testing.T) {
				dir, im := written(t)
				if err := plant(t, filepath.Join(dir, victim)); err != nil {
					t.Fatal(err)
				}
				j, o := openIn(t, dir, quick())
				most := map[string]int{"snapshot-3": 0, "journal-3": 8}[victim]
				if lost, err := im.missing(o); err != nil || lost > most {
					t.Errorf("%d lost, %v", lost, err)
				}
				if !slices.ContainsFunc(j.Findings(), func(f Finding) bool { return f.Where == victim && f.Do != "" }) {
					t.Errorf("not told: %v", j.Findings())
				}
				if _, err := os.Lstat(filepath.Join(dir, victim+damagedSuffix)); err != nil {
					t.Errorf("not kept aside: %v", err)
				}
				mustBeDurable(t, j, mustWrite(t, j, o, "new", "1"))
			})
		}
	}
}

func TestALockThatIsNotAPlainFileIsRefused(t *testing.T) {
	for name, plant := range plants() {
		switch name {
		case "huge file", "unreadable beginning": // what is in the lock does not matter
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir, _ := written(t)
			lock := filepath.Join(dir, lockName)
			if err := os.WriteFile(lock, nil, fileMode); err != nil {
				t.Fatal(err)
			}
			if err := plant(t, lock); err != nil {
				t.Fatal(err)
			}
			_, err := Open(Options{Dir: dir})
			var unsafe *UnsafeError
			if !errors.As(err, &unsafe) {
				t.Errorf("opened, or for another reason: %v", err)
			}
		})
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	dir, _ := written(t)
	others := []string{"control.sock", "snapshot-", "snapshot-03", "snapshot-3x", "journal--1", "journal-18446744073709551616", "journal-0", "notes.damaged", "notes.tmp"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j, o := openIn(t, dir, Limits{RotateEntries: 5})
	for i := range 30 {
		mustBeDurable(t, j, mustWrite(t, j, o, keyOf(i), "1"))
	}
	for _, name := range others {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "mine" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

func TestALeftOverTemporaryFileIsNeverLoaded(t *testing.T) {
	dir, im := written(t)
	newer := filepath.Join(dir, "snapshot-9.tmp")
	if err := os.WriteFile(newer, im.files["snapshot-2"], fileMode); err != nil {
		t.Fatal(err)
	}
	_, o := openIn(t, dir, quick())
	if lost, err := im.missing(o); lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	if _, err := os.Stat(newer); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestADirectoryThatIsRemovedIsMadeAnew(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"removed":    os.RemoveAll,
		"moved away": func(dir string) error { return os.Rename(dir, dir+".moved") },
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, dirMode))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			j, o := openQuietly(t, dir)
			mustBeDurable(t, j, mustWrite(t, j, o, "a", "1"))
			if err := take(dir); err != nil {
				t.Fatal(err)
			}
			var degraded *DegradedError
			if err := j.Durable(t.Context(), mustWrite(t, j, o, "b", "1")); !errors.As(err, &degraded) {
				t.Fatalf("acknowledged in a directory nobody will look at: %v", err)
			}
			o.tryUntilDurable(t, j)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			_, back := openIn(t, dir, quick())
			if back.rows["a"].Value != "1" || back.rows["b"].Value != "1" {
				t.Errorf("recovered %v", back.rows)
			}
		})
	}
}

func TestASecondDirectoryAtThePathIsNotTakenFromAnotherDaemon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, o := openQuietly(t, dir)
	mustBeDurable(t, j, mustWrite(t, j, o, "a", "1"))
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	other, o2 := openIn(t, dir, quick())
	mustBeDurable(t, other, mustWrite(t, other, o2, "theirs", "1"))
	var degraded *DegradedError
	if err := j.Durable(t.Context(), mustWrite(t, j, o, "ours", "1")); !errors.As(err, &degraded) {
		t.Fatalf("acknowledged: %v", err)
	}
	var locked *LockedError
	if err := j.Snapshot(o.snapshot); !errors.As(err, &locked) {
		t.Errorf("went on in the other's directory: %v", err)
	}
	mustBeDurable(t, other, mustWrite(t, other, o2, "theirs", "2"))
	if err := j.Close(); !errors.As(err, &degraded) {
		t.Errorf("close: %v", err)
	}
}

func TestInspectChangesNothing(t *testing.T) {
	dir, im := written(t)
	path := filepath.Join(dir, "journal-3")
	if err := os.WriteFile(path, append(im.files["journal-3"], "torn"...), fileMode); err != nil {
		t.Fatal(err)
	}
	before := contentsOf(t, dir)
	o := &owner{}
	r, findings, err := Inspect(dir, o.restore, o.apply)
	if lost, wrong := im.missing(o); err != nil || r.Entries != 8 || r.TornBytes != 4 || len(findings) == 0 || lost > 0 || wrong != nil {
		t.Errorf("%+v, %v, %v", r, findings, err)
	}
	if after := contentsOf(t, dir); !slices.Equal(before, after) {
		t.Errorf("changed from %v to %v", before, after)
	}
	if _, _, err := Inspect(filepath.Join(dir, "nothing"), o.restore, o.apply); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// contentsOf is every name in the directory with what the file holds and when it was written, the lock aside.
func contentsOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Join([]string{entry.Name(), info.Mode().String(), info.ModTime().String(), string(data)}, "\x00"))
	}
	return all
}
