//go:build fault && linux

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// trouble is something that happens to a filesystem while a process writes on it, and how it ends.
type trouble struct {
	begin, end func(v *volume) error
	// degrades is false when the journal that is open can still be written, and only a new generation cannot be made.
	degrades bool
}

func troubles() map[string]trouble {
	return map[string]trouble{
		"full": {
			begin:    func(v *volume) error { return fill(filepath.Join(v.mount, "ballast")) },
			end:      func(v *volume) error { return os.Remove(filepath.Join(v.mount, "ballast")) },
			degrades: true,
		},
		"without free inodes": {
			begin: func(v *volume) error { return crowd(filepath.Join(v.mount, "crowd")) },
			end:   func(v *volume) error { return os.RemoveAll(filepath.Join(v.mount, "crowd")) },
		},
	}
}

// fill writes until nothing fits any more.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		_, err := file.Write(make([]byte, size))
		switch {
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		case err != nil:
			return err
		}
	}
	return nil
}

// crowd makes files until there can be no more.
func crowd(dir string) error {
	if err := os.Mkdir(dir, dirMode); err != nil {
		return err
	}
	for {
		file, err := os.CreateTemp(dir, "")
		if errors.Is(err, unix.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
		file.Close()
	}
}

// TestTroubleWithARealDisk makes a filesystem full under a process that writes, and well again. The process goes on
// through all of it, and whatever it acknowledged is there after it was killed.
func TestTroubleWithARealDisk(t *testing.T) {
	for name, trouble := range troubles() {
		t.Run(name, func(t *testing.T) {
			v := mountVolume(t, []string{"mkfs.ext4", "-q", "-F", "-N", "200"}, 16<<20)
			w, err := startWriting(process(t, "write", v.dir()))
			if err != nil {
				t.Fatal(err)
			}
			var promised ledger
			for round := range 5 {
				before := 0
				w.until(func() bool { before = len(w.durable); return before > 100*round })
				if err := trouble.begin(v); err != nil {
					t.Fatal(err)
				}
				inTrouble := func() bool { return w.attempts > 3*(round+1) || len(w.durable) > before+5000 }
				if !w.until(inTrouble) {
					t.Fatalf("the writer ended by itself: %s", w.failed)
				}
				if err := trouble.end(v); err != nil {
					t.Fatal(err)
				}
				w.mu.Lock()
				before = len(w.durable)
				w.mu.Unlock()
				if !w.until(func() bool { return len(w.durable) > before+50 }) {
					t.Fatalf("the writer ended by itself: %s", w.failed)
				}
			}
			if err := w.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			w.end()
			if trouble.degrades != (w.degraded > 0) {
				t.Errorf("degraded %d times", w.degraded)
			}
			promised.add(w.durable)
			found, err := read(t, v.dir())
			if err != nil {
				t.Fatal(err)
			}
			if err := promised.check(found); err != nil {
				t.Error(err)
			}
			t.Logf("degraded %d times, %d attempts failed, %d entries acknowledged, 0 lost", w.degraded, w.attempts, len(w.durable))
		})
	}
}

// readOnly mounts the volume so that nothing can be written.
func (v *volume) readOnly(flag uintptr) error {
	return unix.Mount("", v.mount, "", unix.MS_REMOUNT|unix.MS_BIND|flag, "")
}

// TestAStartOnAReadOnlyDiskServesAndHeals starts where nothing can be written.
func TestAStartOnAReadOnlyDiskServesAndHeals(t *testing.T) {
	v := mountVolume(t, []string{"mkfs.ext4", "-q", "-F"}, 16<<20)
	first, err := startWriting(process(t, "write", v.dir()))
	if err != nil {
		t.Fatal(err)
	}
	first.until(func() bool { return len(first.durable) > 100 })
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()
	var promised ledger
	promised.add(first.durable)

	if err := v.readOnly(unix.MS_RDONLY); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, v.dir()); err == nil {
		t.Error("closed without an error though nothing could be written")
	}
	w, err := startWriting(process(t, "write", v.dir()))
	if err != nil {
		t.Fatal(err)
	}
	if !w.until(func() bool { return w.ready && w.degraded > 0 && w.attempts > 2 }) {
		t.Fatalf("did not start: %s", w.failed)
	}
	if err := v.readOnly(0); err != nil {
		t.Fatal(err)
	}
	if !w.until(func() bool { return len(w.durable) > 50 }) {
		t.Fatalf("did not heal: %s", w.failed)
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.end()
	promised.add(w.durable)
	found, err := read(t, v.dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := promised.check(found); err != nil {
		t.Error(err)
	}
}

func TestWhatNeedsRootToPlantIsRefusedToo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can plant a device or a file of another user")
	}
	const nobody = 65534
	for name, plant := range map[string]func(path string) error{
		"device that swallows all": func(path string) error {
			return errors.Join(os.Remove(path), unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		},
		"device without an end": func(path string) error {
			return errors.Join(os.Remove(path), unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))))
		},
		"file of another user": func(path string) error { return os.Chown(path, nobody, nobody) },
	} {
		for _, victim := range []string{"snapshot-3", "journal-3"} {
			t.Run(name+" for "+victim, func(t *testing.T) {
				dir, im := written(t)
				if err := plant(filepath.Join(dir, victim)); err != nil {
					t.Fatal(err)
				}
				j, o := openIn(t, dir, quick())
				if lost, err := im.missing(o); err != nil || victim == "snapshot-3" && lost > 0 {
					t.Errorf("%d lost, %v", lost, err)
				}
				mustBeDurable(t, j, mustWrite(t, j, o, "new", "1"))
			})
		}
		t.Run(name+" for lock", func(t *testing.T) {
			dir, _ := written(t)
			lock := filepath.Join(dir, lockName)
			if err := errors.Join(os.WriteFile(lock, nil, fileMode), plant(lock)); err != nil {
				t.Fatal(err)
			}
			var unsafe *UnsafeError
			if _, err := Open(Options{Dir: dir}); !errors.As(err, &unsafe) {
				t.Errorf("opened, or for another reason: %v", err)
			}
		})
	}
	t.Run("directory of another user", func(t *testing.T) {
		dir, _ := written(t)
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		var unsafe *UnsafeError
		if _, err := Open(Options{Dir: dir}); !errors.As(err, &unsafe) {
			t.Errorf("opened, or for another reason: %v", err)
		}
	})
}
