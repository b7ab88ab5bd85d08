package config

import (
	"os"
	"path/filepath"
	"strings"
)

// maxRunDir is what a directory's path may have for the names of adapters' sockets below it to fit into a socket address on
// every system (macOS has 104 bytes with the end mark). The name of the control socket is shorter.
const maxRunDir = 65

// DefaultPath of the configuration: $NORIA_CONFIG, else noria.hcl in the user's configuration directory.
func DefaultPath() string {
	if path := os.Getenv("NORIA_CONFIG"); path != "" {
		return path
	}
	return filepath.Join(xdg("XDG_CONFIG_HOME", ".config"), "noria", "noria.hcl")
}

func defaultStateDir() string { return filepath.Join(xdg("XDG_STATE_HOME", ".local/state"), "noria") }
func defaultPluginDir() string {
	return filepath.Join(xdg("XDG_DATA_HOME", ".local/share"), "noria", "plugins")
}

// ControlSocket is where the daemon with this configuration serves its control API.
func (h *Host) ControlSocket() string { return controlSocket(h.State.Dir) }

// RunDir is where the daemon with this configuration keeps the sockets of its adapters.
func (h *Host) RunDir() string { return runDir(h.State.Dir) }

func runDir(stateDir string) string {
	return filepath.Join(filepath.Dir(controlSocket(stateDir)), "run")
}

// controlSocket is one to one with the state directory, so that daemons of several do not meet in it.
func controlSocket(stateDir string) string {
	if dir := runtimeDir(); dir != "" && (stateDir == "" || stateDir == defaultStateDir()) {
		return filepath.Join(dir, "noria", "control.sock")
	}
	return filepath.Join(stateDir, "control.sock")
}

// runtimeDir is empty when the system gives the user none.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// xdg is a base directory; one that is not absolute is ignored, as the specification wants it.
func xdg(variable, fallback string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home(), fallback)
}

func home() string {
	if dir, err := os.UserHomeDir(); err == nil {
		return dir
	}
	return "/"
}

// expand makes path absolute: ~ is the home, what is relative is so to dir. Empty stays empty.
func expand(dir, path string) string {
	switch {
	case path == "":
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		return filepath.Join(home(), path[1:])
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	default:
		return filepath.Join(dir, path)
	}
}
