package agent

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

//go:embed dev.hcl
var devConfig string

// devDirectory is the home of a daemon for demonstration: a temporary folder that goes with it.
type devDirectory struct{ path string }

// newDevDirectory makes the folder and writes the configuration into it.
func newDevDirectory() (*devDirectory, error) {
	path, err := os.MkdirTemp(shortTempDir(), "noria-dev-")
	if err != nil {
		return nil, fmt.Errorf("make directory for the demonstration: %w", err)
	}
	d := &devDirectory{path: path}
	if err := os.WriteFile(d.configPath(), []byte(devConfig), 0o600); err != nil {
		d.remove()
		return nil, fmt.Errorf("write configuration of the demonstration: %w", err)
	}
	return d, nil
}

func (d *devDirectory) configPath() string { return filepath.Join(d.path, "noria.hcl") }

func (d *devDirectory) remove() { _ = os.RemoveAll(d.path) }

// greetDev prints what a newcomer can do while the demonstration runs.
func greetDev(out io.Writer, executable, configPath, baseURL string) {
	command := fmt.Sprintf("NORIA_CONFIG=%s %s", configPath, executable)
	fmt.Fprintf(out, `Noria is running with three simulated accounts at %[1]s.
An hour of theirs passes in a minute. Sessions arrive by themselves; before long an account runs out and its session moves.
In another terminal, try:

  %[2]s status
  %[2]s sessions list
  %[2]s explain -new simulated -model simulated-large

Stop it with Ctrl-C.
`, baseURL, command)
}
