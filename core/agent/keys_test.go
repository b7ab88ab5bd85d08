package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var keysTestTime = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)

func TestClientKeyIsMadeOnceAndPrivate(t *testing.T) {
	dir := t.TempDir()
	first, err := openKeyring(dir, keysTestTime)
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
	again, err := openKeyring(dir, keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Allowed("claude", key) || !again.Allowed("codex", key) {
		t.Error("the client key is not allowed after the keyring was opened again")
	}
}

func TestRunKeyServesItsProviderUntilRevoked(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir, keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	id, key, err := k.NewRun("claude", keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Allowed("claude", key) {
		t.Error("a run's key is refused for its provider")
	}
	if k.Allowed("codex", key) {
		t.Error("a run's key is allowed for another provider")
	}
	restarted, err := openKeyring(dir, keysTestTime.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !restarted.Allowed("claude", key) {
		t.Error("a run's key is refused after a restart of the daemon")
	}
	late, err := openKeyring(dir, keysTestTime.Add(runKeyLifetime+time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if late.Allowed("claude", key) {
		t.Error("a run's key outlived its lifetime")
	}
	if err := restarted.RevokeRun(id); err != nil {
		t.Fatal(err)
	}
	if restarted.Allowed("claude", key) {
		t.Error("a revoked key is allowed")
	}
}

func TestKeysAreNotKeptInTheClear(t *testing.T) {
	dir := t.TempDir()
	k, err := openKeyring(dir, keysTestTime)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := k.NewRun("claude", keysTestTime)
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
			if _, err := openKeyring(dir, keysTestTime); err == nil {
				t.Error("the keyring took it")
			}
		})
	}
}

func TestWrongKeysAreRefused(t *testing.T) {
	k, err := openKeyring(t.TempDir(), keysTestTime)
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
