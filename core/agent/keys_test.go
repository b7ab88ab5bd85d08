package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var keysTestTime = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)

func TestClientKeyIsMadeOnceAndPrivate(t *testing.T) {
	dir := t.TempDir()
	first, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, err := first.Client()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, clientKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the client key = %v, want 0600", info.Mode().Perm())
	}
	again, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Allowed("claude", key) || !again.Allowed("codex", key) {
		t.Error("the client key is not allowed after the keyring was opened again")
	}
}

// thisProcess runs as long as the test.
func thisProcess(t *testing.T) runner {
	t.Helper()
	r, err := runnerOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunKeyServesItsProviderUntilRevoked(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	id, key, err := k.NewRun("claude", thisProcess(t), keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Allowed("claude", key) {
		t.Error("a run's key is refused for its provider")
	}
	if k.Allowed("codex", key) {
		t.Error("a run's key is allowed for another provider")
	}
	restarted, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !restarted.Allowed("claude", key) {
		t.Error("a run's key is refused after a restart of the daemon")
	}
	if err := restarted.RevokeRun(id); err != nil {
		t.Fatal(err)
	}
	if restarted.Allowed("claude", key) {
		t.Error("a revoked key is allowed")
	}
}

func TestRunKeyEndsWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("cat")
	stdin, err := child.StdinPipe() // it lives until this is closed, or it is killed
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	r, err := runnerOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := k.NewRun("claude", r, keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := k.NewRun("claude", thisProcess(t), keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := k.RevokeEnded(); n != 0 || err != nil || !k.Allowed("claude", key) {
		t.Errorf("while its process lives: %d ended, %v", n, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	if n, err := k.RevokeEnded(); n != 1 || err != nil {
		t.Errorf("after it was killed: %d ended, %v", n, err)
	}
	restarted, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]*keyring{"at once": k, "after a restart": restarted} {
		if keys.Allowed("claude", key) {
			t.Errorf("%s: the key outlived its process", name)
		}
		if !keys.Allowed("claude", other) {
			t.Errorf("%s: the key of another process ended with it", name)
		}
	}
}

func TestAProcessThatOnlyHasTheNumberOfARunnerIsAnother(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The runner is gone, and its number was given to this process.
	_, key, err := k.NewRun("claude", runner{PID: os.Getpid(), Started: "at another time"}, keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	restarted, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	if restarted.Allowed("claude", key) {
		t.Error("the key was taken over by another process at a restart")
	}
	if n, err := k.RevokeEnded(); n != 1 || err != nil || k.Allowed("claude", key) {
		t.Errorf("%d ended, %v", n, err)
	}
}

func TestRotationEndsRunsOnlyWhenAsked(t *testing.T) {
	k, err := openKeyring(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := k.NewRun("claude", thisProcess(t), keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	if !k.Allowed("claude", key) || len(k.Runs()) != 1 {
		t.Error("another client key ended a run")
	}
	if n, err := k.RevokeRuns(); n != 1 || err != nil || k.Allowed("claude", key) || len(k.Runs()) != 0 {
		t.Errorf("%d ended, %v", n, err)
	}
}

func TestKeysThatCannotBeWrittenStillOpen(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	// A directory in the place of the file fails for root as well.
	if err := os.Mkdir(filepath.Join(dir, runKeysFile), 0o700); err != nil {
		t.Fatal(err)
	}
	_, key, err := k.NewRun("claude", thisProcess(t), keysTestTime)
	if !errors.Is(err, errUnsaved) || !k.Allowed("claude", key) {
		t.Errorf("error %v, allowed %v", err, k.Allowed("claude", key))
	}
}

func TestAnEmptyClientKeyIsReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, clientKeyFile), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := k.Client(); err != nil || !k.Allowed("claude", key) {
		t.Errorf("key %q, %v", key, err)
	}
}

func TestKeysAreNotKeptInTheClear(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := k.NewRun("claude", thisProcess(t), keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, runKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), key) {
		t.Error("a run's key stands in its file")
	}
}

func TestKeyFilesOpenToOthersAreRefused(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"mode 0644": func(path string) error { return os.WriteFile(path, []byte("noria_x\n"), 0o644) },
		"a link": func(path string) error {
			target := path + ".target"
			if err := os.WriteFile(target, []byte("noria_x\n"), 0o600); err != nil {
				return err
			}
			return os.Symlink(target, path)
		},
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := plant(filepath.Join(dir, clientKeyFile)); err != nil {
				t.Fatal(err)
			}
			if _, err := openKeyring(dir); err == nil {
				t.Error("the keyring took it")
			}
		})
	}
}

func TestWrongKeysAreRefused(t *testing.T) {
	k, err := openKeyring(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "noria_", strings.Repeat("x", 257)} {
		if k.Allowed("claude", key) {
			t.Errorf("key %q is allowed", key)
		}
	}
	old, err := k.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	if k.Allowed("claude", old) {
		t.Error("the old client key is allowed after a rotation")
	}
}
