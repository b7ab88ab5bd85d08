package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// TestMain also plays the official client: a script starts this executable again, with what it is to do in variables.
func TestMain(m *testing.M) {
	if script := os.Getenv("FAKE_CLAUDE_STATUS"); script != "" {
		os.Exit(playClaude(script))
	}
	goleak.VerifyTestMain(m)
}

// playClaude is auth status: it notes what it was started with, renews the login if it was told to, and prints the file.
func playClaude(answer string) int {
	home := os.Getenv("CLAUDE_CONFIG_DIR")
	note := strings.Join(os.Args[1:], " ")
	for _, name := range diverting {
		if value, set := os.LookupEnv(name); set {
			note += " " + name + "=" + value
		}
	}
	log, err := os.OpenFile(os.Getenv("FAKE_CLAUDE_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 70
	}
	defer log.Close()
	fmt.Fprintln(log, note)
	if renewed := os.Getenv("FAKE_CLAUDE_RENEWED"); renewed != "" {
		if os.WriteFile(filepath.Join(home, ".credentials.json"), []byte(renewed), 0o600) != nil {
			return 70
		}
	}
	out, err := os.ReadFile(answer)
	if err != nil {
		return 70
	}
	os.Stdout.Write(out)
	return 0
}

// fakeClient makes an official client that answers auth status with a file of testdata, and returns its path and that of
// its log. renewed is what it writes as its login; empty: it renews nothing.
func fakeClient(t *testing.T, status, renewed string) (path, log string) {
	t.Helper()
	dir := t.TempDir()
	path, log = filepath.Join(dir, "claude"), filepath.Join(dir, "log")
	answer, err := filepath.Abs(filepath.Join("testdata/status", status+".json"))
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nFAKE_CLAUDE_STATUS='%s' FAKE_CLAUDE_LOG='%s' FAKE_CLAUDE_RENEWED='%s' exec '%s' \"$@\"\n",
		answer, log, renewed, os.Args[0])
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, log
}

func runs(t *testing.T, log string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

const canary = "sk-ant-oat01-CANARY"

func loginFile(token string, expiresAt time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"CANARY-refresh","expiresAt":%d,"scopes":["user:inference"]}}`,
		token, expiresAt.UnixMilli())
}

// homeWith makes a configuration directory with that login; empty: with none.
func homeWith(t *testing.T, login string) string {
	t.Helper()
	return adaptertest.NewHome(t, ".credentials.json", login)
}

// at makes an adapter whose clock stands.
func at(now time.Time) *Adapter {
	a := New()
	a.now = func() time.Time { return now }
	return a
}

func homeAccount(t *testing.T, client, home string) sdk.Account {
	t.Helper()
	return adaptertest.NewAccount(t, map[string]any{"client": client}, map[string]any{"home": home}, sdk.Credential{})
}
