//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Places, seen from this package.
const (
	binaries      = "../../../bin"
	clients       = "../../../.cache/clients/node_modules/.bin"
	clientsScript = "../../../.ci/clients"
)

// patience bounds every wait for something observable.
const patience = time.Minute

// TestMain installs the pinned clients, which does nothing when they are there.
func TestMain(m *testing.M) {
	install := exec.Command(clientsScript)
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "install the official clients:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func absolute(t *testing.T, path ...string) string {
	t.Helper()
	found, err := filepath.Abs(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(found); err != nil {
		t.Fatalf("%v (make build first)", err)
	}
	return found
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// each runs a scenario for both official clients, each in a world of its own.
func each(t *testing.T, scenario func(t *testing.T, w *world, c client)) {
	for _, c := range []client{claude{}, codex{}} {
		t.Run(c.provider(), func(t *testing.T) { scenario(t, newWorld(t), c) })
	}
}
