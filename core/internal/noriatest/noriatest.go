// Package noriatest runs the built daemon with its real adapters as processes, for tests in which the process boundary
// matters.
package noriatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a condition may take to come true. It bounds a broken test and decides nothing else.
const patience = 30 * time.Second

// Binaries are the built commands.
type Binaries struct{ Dir string }

// Build builds noria and the bundled adapters into a folder, which release removes. It is for TestMain.
func Build() (binaries Binaries, release func(), err error) {
	dir, err := os.MkdirTemp("", "noria-bin-")
	if err != nil {
		return Binaries{}, nil, err
	}
	release = func() { _ = os.RemoveAll(dir) }
	command := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+"/", "github.com/noria-dev/noria/cmd/...")
	if out, err := command.CombinedOutput(); err != nil {
		release()
		return Binaries{}, nil, fmt.Errorf("build commands: %w\n%s", err, out)
	}
	return Binaries{Dir: dir}, release, nil
}

// Noria is the path of the command.
func (b Binaries) Noria() string { return filepath.Join(b.Dir, "noria") }

// Home is a folder of a user who has nothing else: configuration, state, sockets. Daemons that are started in it one
// after the other keep their state.
type Home struct {
	t        testing.TB
	binaries Binaries
	Dir      string
}

// NewHome makes a home. Its path is short, so that sockets fit.
func NewHome(t testing.TB, binaries Binaries) *Home {
	t.Helper()
	dir, err := os.MkdirTemp("", "nt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &Home{t: t, binaries: binaries, Dir: dir}
}

// Path of a file in the home.
func (h *Home) Path(elements ...string) string {
	return filepath.Join(append([]string{h.Dir}, elements...)...)
}

// Write writes a private file and gives its path.
func (h *Home) Write(name, content string) string {
	h.t.Helper()
	path := h.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// Environment of commands in this home: nothing of the machine's user.
func (h *Home) Environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.Dir, "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1",
		"NORIA_CONFIG=" + h.Path("noria.hcl"),
	}
}

// Command prepares a noria command.
func (h *Home) Command(arguments ...string) *exec.Cmd {
	command := exec.Command(h.binaries.Noria(), arguments...)
	command.Env = h.Environment()
	command.Dir = h.Dir
	return command
}

// Run runs a noria command and gives what it printed and its exit code.
func (h *Home) Run(arguments ...string) (stdout, stderr string, code int) {
	h.t.Helper()
	command := h.Command(arguments...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatalf("run noria %v: %v", arguments, err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// Daemon is a running noria serve.
type Daemon struct {
	*Home
	process *exec.Cmd
	log     *logBuffer
	exited  chan struct{}
	// Address of the proxy.
	Address string
}

// serving is the line in which the daemon says where its proxy listens.
var serving = regexp.MustCompile(`serving: .*address=\["((?:[0-9.]+|\[[0-9a-f:]+\]):[0-9]+)"`)

// Start starts a daemon with the configuration noria.hcl of the home and waits until it says where it serves. It is
// killed at the end of the test if it still runs then.
func (h *Home) Start(arguments ...string) *Daemon {
	h.t.Helper()
	d := &Daemon{Home: h, process: h.Command(append([]string{"serve"}, arguments...)...), log: &logBuffer{}, exited: make(chan struct{})}
	d.process.Stdout, d.process.Stderr = d.log, d.log
	if err := d.process.Start(); err != nil {
		h.t.Fatalf("start noria serve: %v", err)
	}
	go func() {
		defer close(d.exited)
		_ = d.process.Wait()
	}()
	h.t.Cleanup(func() {
		if d.Running() {
			d.Kill()
		}
	})
	Eventually(h.t, "the daemon says where it serves", func() bool {
		if !d.Running() {
			h.t.Fatalf("noria serve ended with code %d:\n%s", d.process.ProcessState.ExitCode(), d.log)
		}
		match := serving.FindStringSubmatch(d.log.String())
		if match == nil {
			return false
		}
		d.Address = match[1]
		return true
	})
	return d
}

// Ready waits until /readyz says so.
func (d *Daemon) Ready() *Daemon {
	d.t.Helper()
	Eventually(d.t, "the daemon is ready", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Address+"/readyz", nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	})
	return d
}

// PID of the daemon.
func (d *Daemon) PID() int { return d.process.Process.Pid }

// Running reports whether the process has not ended.
func (d *Daemon) Running() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// Kill ends the daemon with SIGKILL and waits for its end.
func (d *Daemon) Kill() {
	_ = d.process.Process.Kill()
	<-d.exited
}

// Stop ends the daemon with SIGTERM and gives its exit code.
func (d *Daemon) Stop() int {
	d.t.Helper()
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatalf("stop noria serve: %v", err)
	}
	select {
	case <-d.exited:
	case <-time.After(patience):
		d.t.Fatalf("noria serve did not end after SIGTERM:\n%s", d.log)
	}
	return d.process.ProcessState.ExitCode()
}

// Signal sends a signal.
func (d *Daemon) Signal(signal os.Signal) {
	d.t.Helper()
	if err := d.process.Process.Signal(signal); err != nil {
		d.t.Fatalf("signal noria serve: %v", err)
	}
}

// Log is what the daemon printed so far.
func (d *Daemon) Log() string { return d.log.String() }

// Key is the client key of the home.
func (d *Daemon) Key() string {
	d.t.Helper()
	out, errs, code := d.Run("token", "show")
	if code != 0 {
		d.t.Fatalf("noria token show: code %d: %s", code, errs)
	}
	return string(bytes.TrimSpace([]byte(out)))
}

// Eventually waits until a condition is true, and fails the test when it never is.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// logBuffer keeps what a process prints. It is safe for concurrent use.
type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
