//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/api"
)

// daemon is the built noria as a process of its own, with its real adapters.
type daemon struct {
	*world
	port    int
	process *exec.Cmd
	exited  chan struct{}
	// failure is how the process ended; read it after exited.
	failure error
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (d *daemon) address() string { return fmt.Sprintf("127.0.0.1:%d", d.port) }

func (d *daemon) config() string { return d.path("daemon", "noria.hcl") }

// environment of the daemon and of its commands: a home of their own and nothing of the user's.
func (d *daemon) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1",
		"HOME=" + d.folder("daemon", "home"), "TMPDIR=" + d.folder("daemon", "tmp"),
		"XDG_RUNTIME_DIR=" + d.folder("daemon", "run"), "NORIA_CONFIG=" + d.config(),
	}
}

// start runs the daemon and waits until it is ready.
func (d *daemon) start() {
	d.Helper()
	log, err := os.OpenFile(d.path("daemon", "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	defer log.Close()
	d.process = exec.Command(absolute(d.T, binaries, "noria"), "serve", "-config", d.config())
	d.process.Env, d.process.Stdout, d.process.Stderr = d.environment(), log, log
	if err := d.process.Start(); err != nil {
		d.Fatal(err)
	}
	process, exited := d.process, make(chan struct{})
	d.exited = exited
	go func() {
		defer close(exited)
		d.failure = process.Wait()
	}()
	eventually(d.T, "the daemon is ready", func() bool {
		if d.ended() {
			d.Fatalf("the daemon ended: %v\n%s", d.failure, d.log())
		}
		answer, err := http.Get("http://" + d.address() + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// kill ends the daemon as nobody wishes, and waits until its adapters have noticed.
func (d *daemon) kill() {
	d.Helper()
	var adapters []int
	for _, plugin := range d.plugins() {
		adapters = append(adapters, plugin.PID)
	}
	if err := d.process.Process.Kill(); err != nil {
		d.Fatal(err)
	}
	<-d.exited
	eventually(d.T, "the adapters of a killed daemon end", func() bool {
		return !slices.ContainsFunc(adapters, alive)
	})
}

// ended is true when the process does not run, or never did.
func (d *daemon) ended() bool {
	if d.exited == nil {
		return true
	}
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// stop asks the daemon to end, which it must do without complaint.
func (d *daemon) stop() {
	d.Helper()
	if d.ended() {
		return
	}
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		d.Error(err)
		return
	}
	eventually(d.T, "the daemon ends after SIGTERM", d.ended)
	if d.failure != nil {
		d.Errorf("the daemon ended with %v\n%s", d.failure, d.log())
	}
	if d.Failed() {
		d.Logf("the daemon's log:\n%s", d.log())
	}
}

func (d *daemon) log() string {
	text, err := os.ReadFile(d.path("daemon", "log"))
	if err != nil {
		return err.Error()
	}
	if lines := strings.SplitAfter(string(text), "\n"); len(lines) > 120 {
		return "…\n" + strings.Join(lines[len(lines)-120:], "")
	}
	return string(text)
}

// noria runs a command of the daemon's and returns what it printed.
func (w *world) noria(args ...string) string {
	w.Helper()
	command := exec.Command(absolute(w.T, binaries, "noria"), args...)
	command.Env = w.daemon.environment()
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		w.Fatalf("noria %s: %v\n%s%s", strings.Join(args, " "), err, out, complaint.String())
	}
	return string(out)
}

// ask runs a command with -json and decodes what it printed.
func ask[T any](w *world, args ...string) (value T) {
	w.Helper()
	out := w.noria(append(args, "-json")...)
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		w.Fatalf("noria %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return value
}

func (w *world) plugins() []api.Plugin { return ask[[]api.Plugin](w, "plugins", "list") }

// account as the daemon sees it.
func (w *world) account(provider, name string) api.Account {
	w.Helper()
	for _, a := range ask[[]api.Account](w, "accounts", "list") {
		if a.Provider == provider && a.Name == name {
			return a
		}
	}
	w.Fatalf("the daemon knows no account %s/%s", provider, name)
	return api.Account{}
}

// session as the daemon sees it, by the identity that the client gave.
func (w *world) session(identity string) (api.Session, bool) {
	w.Helper()
	for _, s := range ask[[]api.Session](w, "sessions", "list") {
		if strings.HasSuffix(s.Key, "/"+identity) {
			return s, true
		}
	}
	return api.Session{}, false
}

// boundTo names the one account that all models of a session are bound to.
func (w *world) boundTo(provider, identity string) string {
	w.Helper()
	session, ok := w.session(identity)
	if !ok || len(session.Bindings) == 0 {
		w.Fatalf("session %s is not bound", identity)
	}
	first := session.Bindings[0].Account
	for _, binding := range session.Bindings {
		if binding.Account != first {
			w.Errorf("session %s is on %s for one model and on %s for another", identity, first, binding.Account)
		}
	}
	return strings.TrimPrefix(first, provider+"/")
}

// only makes the named account the only enabled one of its provider while the work is done.
func (w *world) only(provider, name string, work func()) {
	w.Helper()
	turn := func(verb string) {
		for _, a := range w.of(provider) {
			if a.name != name {
				w.noria("accounts", verb, a.id())
			}
		}
	}
	turn("disable")
	work()
	turn("enable")
}
