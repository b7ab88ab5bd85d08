//go:build fault && linux

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// The filesystem stops as in a power cut: what is not on the device is gone, its own log included.
	goingDown   = 0x8004587d // FS_IOC_SHUTDOWN, _IOR('X', 125, __u32)
	noLogFlush  = 2
	powerCuts   = 150
	controlCuts = 40
)

// TestPowerCutsOnRealFilesystems cuts filesystems on loop devices off while a process writes, mounts them again, and asks what is
// there. The device itself loses nothing that reached it, so this shows the part of the filesystem: data and names that were never
// synced. The controls forget a sync and must be caught.
func TestPowerCutsOnRealFilesystems(t *testing.T) {
	for _, kind := range []struct {
		name  string
		make  []string
		bytes int64
	}{
		{"ext4", []string{"mkfs.ext4", "-q", "-F"}, 64 << 20},
		{"xfs", []string{"mkfs.xfs", "-q", "-f"}, 320 << 20},
	} {
		for _, control := range []string{"", "journals", "snapshots"} {
			name := kind.name
			if control != "" {
				name += " with a control that does not sync " + control
			}
			t.Run(name, func(t *testing.T) {
				volume := mountVolume(t, kind.make, kind.bytes)
				if control == "" {
					volume.mustSurvive(t)
					return
				}
				volume.mustBeCaught(t, control)
			})
		}
	}
}

// volume is a filesystem of its own, mounted where nobody else sees it.
type volume struct{ device, mount string }

// mountVolume makes a filesystem in a file and mounts it in a mount namespace of this test's thread.
func mountVolume(t *testing.T, make []string, bytes int64) *volume {
	t.Helper()
	if _, err := exec.LookPath(make[0]); err != nil {
		t.Skipf("this machine has no %s", make[0])
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and its namespace with it
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Skipf("this machine gives no mount namespace: %v", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skipf("this machine gives no private mounts: %v", err)
	}
	v := &volume{device: filepath.Join(t.TempDir(), "device"), mount: t.TempDir()}
	if err := errors.Join(os.WriteFile(v.device, nil, 0o600), os.Truncate(v.device, bytes)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(make[0], append(make[1:], v.device)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", make, err, out)
	}
	v.up(t)
	t.Cleanup(func() { v.down(t) })
	return v
}

func (v *volume) up(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "loop", v.device, v.mount).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
}

func (v *volume) down(t *testing.T) {
	t.Helper()
	if err := unix.Unmount(v.mount, 0); err != nil {
		t.Fatalf("unmount: %v", err)
	}
}

func (v *volume) dir() string { return filepath.Join(v.mount, "state") }

// cut stops the filesystem at once.
func (v *volume) cut() error {
	fd, err := unix.Open(v.mount, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	how := uint32(noLogFlush)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), goingDown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		return fmt.Errorf("stop filesystem: %w", errno)
	}
	return nil
}

// writeAndCut lets a process write, takes the power away at a random moment, and gives what the next start finds.
func (v *volume) writeAndCut(t *testing.T, forget string, promised *ledger, random *rand.Rand) (reading, error) {
	t.Helper()
	cmd := process(t, "write", v.dir())
	cmd.Env = append(cmd.Env, forgetVariable+"="+forget)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w, err := startWriting(cmd)
	if err != nil {
		return reading{}, err
	}
	enough := random.IntN(120)
	if !w.until(func() bool { return len(w.durable) > enough }) {
		w.end()
		return reading{}, fmt.Errorf("the writer ended by itself: %s", w.failed)
	}
	time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond)))) // the moment is to be any moment
	// Only what was acknowledged before the cut counts: a stopped ext4 lets a sync that was under way succeed, which after a real
	// power cut nobody would see.
	w.mu.Lock()
	promised.add(w.durable)
	w.mu.Unlock()
	if err := errors.Join(v.cut(), cmd.Process.Kill()); err != nil {
		return reading{}, err
	}
	w.end()
	v.down(t)
	v.up(t)
	return read(t, v.dir())
}

func (v *volume) mustSurvive(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	var promised ledger
	torn, bad := 0, 0
	for cut := range powerCuts {
		found, err := v.writeAndCut(t, "", &promised, random)
		if err == nil {
			err = promised.check(found)
		}
		if err != nil {
			t.Fatalf("cut %d: %v", cut, err)
		}
		torn += found.Recovered.TornBytes
		bad += found.Recovered.BadLines
	}
	t.Logf("%d power cuts, %d entries acknowledged, 0 lost; %d bytes torn, %d bad lines on the way", powerCuts, promised.last, torn, bad)
}

func (v *volume) mustBeCaught(t *testing.T, forget string) {
	random := rand.New(rand.NewPCG(23, 24))
	var promised ledger
	for cut := range controlCuts {
		found, err := v.writeAndCut(t, forget, &promised, random)
		if err == nil {
			err = promised.check(found)
		}
		if err != nil {
			t.Logf("caught at cut %d: %v", cut+1, err)
			return
		}
	}
	t.Errorf("not caught in %d power cuts", controlCuts)
}
