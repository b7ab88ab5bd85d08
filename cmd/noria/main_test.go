package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// binaries is where the executables of this tree are built, once for all tests.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "noria-main-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+"/",
		"./../noria", "./../noria-provider-claude", "./../noria-provider-codex", "./../noria-provider-simulated")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	binaries = dir
	return m.Run()
}

// world is a home of its own for the commands of one test.
type world struct {
	*testing.T
	dir string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// The names of sockets must be short, and those of the usual temporary directories of tests are not.
	dir, err := os.MkdirTemp("", "nw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &world{T: t, dir: dir}
}

func (w *world) path(names ...string) string {
	return filepath.Join(append([]string{w.dir}, names...)...)
}

// config writes a configuration whose state is in this world.
func (w *world) config(text string) string {
	w.Helper()
	return w.write("noria.hcl", "state {\n  dir = \"state\"\n}\n"+text)
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binaries, "noria"), args...)
	cmd.Env = []string{"HOME=" + w.path("home"), "PATH=" + os.Getenv("PATH"), "NORIA_CLAUDE_TOKEN=made-up-token"}
	return cmd
}

func (w *world) noria(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	cmd := w.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// daemon is a noria serve that runs.
type daemon struct {
	*exec.Cmd
	log *watched
	// told to stop by the test itself.
	told bool
}

// serve starts a daemon and returns once it serves.
func (w *world) serve(config string) *daemon {
	w.Helper()
	d := &daemon{Cmd: w.command("serve", "-config", config), log: newWatched()}
	d.Stderr = d.log
	if err := d.Start(); err != nil {
		w.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// How it ended is told where it is stopped.
		_ = d.Wait()
		d.log.end()
	}()
	w.Cleanup(func() {
		if !d.told {
			// It may have ended already.
			_ = d.Process.Signal(os.Interrupt)
		}
		<-ended
		if code := d.ProcessState.ExitCode(); code != 0 {
			w.Errorf("the daemon ended with %d:\n%s", code, d.log)
		}
	})
	if !d.log.until("serving") {
		w.Fatalf("the daemon ended:\n%s", d.log)
	}
	return d
}

// watched is a log that can be waited for.
type watched struct {
	mu    sync.Mutex // guards text and ended
	grown *sync.Cond
	text  bytes.Buffer
	ended bool
}

func newWatched() *watched {
	l := &watched{}
	l.grown = sync.NewCond(&l.mu)
	return l
}

func (l *watched) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.grown.Broadcast()
	return l.text.Write(p)
}

func (l *watched) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.grown.Broadcast()
}

// until waits for words; false: the log ended without them.
func (l *watched) until(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !bytes.Contains(l.text.Bytes(), []byte(words)) {
		if l.ended {
			return false
		}
		l.grown.Wait()
	}
	return true
}

func (l *watched) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// untilReady asks until all adapters are ready.
func (w *world) untilReady(config string) {
	w.Helper()
	var stdout, stderr string
	for range 500 {
		var code int
		code, stdout, stderr = w.noria("plugins", "list", "-strict", "-config", config)
		if code == 0 && strings.Contains(stdout, "ready") {
			return
		}
		if strings.Contains(stdout, "failed") {
			break
		}
	}
	w.Fatalf("the adapters are not ready:\n%s%s", stdout, stderr)
}

// simulatedAt serves the simulated provider.
func simulatedAt(address string) string {
	return fmt.Sprintf("listen {\n  address = %q\n}\nprovider \"simulated\" {\n  account \"a\" {}\n}\n", address)
}

func TestExamplesAreValidAndFormatted(t *testing.T) {
	files, err := filepath.Glob("../../examples/configs/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	w := newWorld(t)
	for _, file := range append(files, "../../noria.hcl.example") {
		if code, _, stderr := w.noria("config", "validate", file); code != 0 {
			t.Errorf("%s: exit %d\n%s", file, code, stderr)
		}
		if code, _, stderr := w.noria("config", "fmt", "-check", file); code != 0 {
			t.Errorf("%s is not formatted: %s", file, stderr)
		}
	}
}

func TestExampleHasEverySettingOfTheBundledPlugins(t *testing.T) {
	example, err := os.ReadFile("../../noria.hcl.example")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	for _, plugin := range []string{"claude", "codex"} {
		_, stdout, stderr := w.noria("plugins", "info", plugin, "-json")
		var info struct {
			Config  []struct{ Name, Default string } `json:"config_schema"`
			Account []struct{ Name, Default string } `json:"account_schema"`
		}
		if err := json.Unmarshal([]byte(stdout), &info); err != nil || len(info.Config) == 0 || len(info.Account) == 0 {
			t.Fatalf("%s: %v %q %q", plugin, err, stdout, stderr)
		}
		for _, a := range append(info.Config, info.Account...) {
			setting := regexp.MustCompile(`(?m)^\s*(# )?` + a.Name + `\s+= ` + regexp.QuoteMeta(a.Default))
			if !setting.Match(example) {
				t.Errorf("%s of %s, by default %s, is not in noria.hcl.example", a.Name, plugin, a.Default)
			}
		}
	}
}

func TestBadInputIsAnErrorWithARemedy(t *testing.T) {
	// In these the state directory is found good and opened first.
	opens := map[string]bool{
		"a port in use": true, "a port in use by another daemon": true, "a port in use for metrics": true, "a second daemon": true,
		"a client key that others can read": true,
	}
	trace := regexp.MustCompile(`goroutine \d+|panic:|\.go:\d+`)
	for _, c := range []struct {
		rule string
		// prepare returns the arguments.
		prepare func(w *world) []string
		code    int
		says    []string
	}{
		{"unknown attributes", func(w *world) []string {
			return []string{"serve", "-config", w.config("listen {\n  adress = \"127.0.0.1:1\"\n}\ntelemetry {\n  refresh = \"1s\"\n}\n")}
		}, 78, []string{"noria.hcl:5,3", `Did you mean "address"?`, "refresh is between 30s and 5m"}},
		{"an unknown attribute of a plugin", func(w *world) []string {
			return []string{"serve", "-config", w.config("provider \"claude\" {\n  account \"work\" {\n    hme = \"~/.claude\"\n  }\n}\n")}
		}, 78, []string{"noria.hcl:6,5", `Did you mean "home"?`}},
		{"what only the plugin can know", func(w *world) []string {
			return []string{"config", "validate", w.config("provider \"claude\" {\n  upstream = \"http://192.0.2.1\"\n  account \"work\" {}\n}\n")}
		}, 78, []string{"noria.hcl:5,14", "Invalid upstream", "noria.hcl:6,3", "Account has no login"}},
		{"no configuration", func(w *world) []string { return []string{"serve", "-config", w.path("none.hcl")} },
			78, []string{"No configuration file", "noria init"}},
		{"a configuration that may not be read as a file", func(w *world) []string { return []string{"serve", "-config", w.dir} },
			78, []string{"it is not a regular file"}},
		{"an unknown provider", func(w *world) []string {
			return []string{"serve", "-config", w.config("provider \"claud\" {}\n")}
		}, 78, []string{"Unknown provider", `Did you mean "claude"?`}},
		{"a plugin with another digest", func(w *world) []string {
			path := w.plugin("#!/bin/sh\nexit 7\n")
			return []string{"serve", "-config", w.config(fmt.Sprintf("plugin \"acme\" {\n  path = %q\n  sha256 = %q\n}\nprovider \"acme\" {}\n", path, strings.Repeat("0", 64)))}
		}, 78, []string{`noria.hcl:6,12`, `Plugin "acme" cannot be used`, "digest_mismatch", `"noria plugins pin acme" prints the line`}},
		{"a plugin that does not start", func(w *world) []string {
			return []string{"serve", "-config", w.config(w.acme(w.plugin("#!/bin/sh\necho cannot read token >&2\nexit 7\n")))}
		}, 78, []string{`noria.hcl:5,10`, `Plugin "acme" cannot be used`, "exit status 7", "cannot read token", "noria plugins test"}},
		{"an executable that is no plugin", func(w *world) []string {
			return []string{"serve", "-config", w.config(w.acme(w.plugin("#!/bin/sh\n")))}
		}, 78, []string{`noria.hcl:5,10`, "does not describe itself", "perhaps no adapter for Noria", "noria plugins test"}},
		{"an executable that may not be run", func(w *world) []string {
			path := w.plugin("#!/bin/sh\n")
			if err := os.Chmod(path, 0o644); err != nil {
				w.Fatal(err)
			}
			return []string{"serve", "-config", w.config(w.acme(path))}
		}, 78, []string{`noria.hcl:5,10`, "file is not executable", "chmod +x"}},
		{"an executable that is a directory", func(w *world) []string {
			if err := os.Mkdir(w.path("acme"), 0o700); err != nil {
				w.Fatal(err)
			}
			return []string{"serve", "-config", w.config(w.acme(w.path("acme")))}
		}, 78, []string{`noria.hcl:5,10`, "not a regular file", "A plugin is an executable file"}},
		{"a plugin that is not there", func(w *world) []string {
			return []string{"serve", "-config", w.config(w.acme(w.path("none")))}
		}, 78, []string{`noria.hcl:5,10`, "no executable at the configured path", `Set path in plugin "acme"`}},
		{"a plugin of another provider", func(w *world) []string {
			return []string{"serve", "-config", w.config(w.acme(filepath.Join(binaries, "noria-provider-claude")))}
		}, 78, []string{`noria.hcl:5,10`, "serves another provider", "Name the plugin's own provider"}},
		{"a port in use", func(w *world) []string {
			return []string{"serve", "-config", w.config(simulatedAt(w.held()))}
		}, 78, []string{"listen on 127.0.0.1:", "taken by another program", "lsof -i :", "set another listen.address"}},
		{"a port in use by another daemon", func(w *world) []string {
			other := newWorld(w.T)
			config := other.config(simulatedAt("127.0.0.1:0"))
			other.serve(config)
			return []string{"serve", "-config", w.config(simulatedAt(other.listening(config)))}
		}, 78, []string{"listen on 127.0.0.1:", "taken by another noria", "stop that one"}},
		{"a doctor who finds another daemon at the port", func(w *world) []string {
			other := newWorld(w.T)
			config := other.config(simulatedAt("127.0.0.1:0"))
			other.serve(config)
			return []string{"doctor", "-config", w.config(simulatedAt(other.listening(config)))}
		}, 1, []string{"is served by another noria", "if it is yours and state.dir has changed"}},
		{"a port in use for metrics", func(w *world) []string {
			return []string{"serve", "-config", w.config(simulatedAt("127.0.0.1:0") + fmt.Sprintf("metrics {\n  address = %q\n}\n", w.held()))}
		}, 78, []string{"listen on 127.0.0.1:", "set another metrics.address"}},
		{"a second daemon", func(w *world) []string {
			config := w.config(simulatedAt("127.0.0.1:0"))
			w.serve(config)
			return []string{"serve", "-config", config}
		}, 78, []string{"another daemon uses this state directory", "holds it", "stop that one"}},
		{"a state directory that is a file", func(w *world) []string {
			w.write("state", "")
			return []string{"serve", "-config", w.config(simulatedAt("127.0.0.1:0"))}
		}, 78, []string{"noria.hcl:2,9", "It is no directory", "Set state.dir"}},
		{"a state directory below a file", func(w *world) []string {
			w.write("file", "")
			return []string{"serve", "-config", w.stateIn("file/state")}
		}, 78, []string{"noria.hcl:2,9", "file is no directory", "Set state.dir"}},
		{"a state directory that is open to others", func(w *world) []string {
			if err := os.Mkdir(w.path("state"), 0o700); err != nil {
				w.Fatal(err)
			}
			if err := os.Chmod(w.path("state"), 0o777); err != nil {
				w.Fatal(err)
			}
			return []string{"serve", "-config", w.config(simulatedAt("127.0.0.1:0"))}
		}, 78, []string{"noria.hcl:2,9", "It is open to others (mode 0777)", "chmod 700"}},
		{"a state directory that cannot be made", func(w *world) []string {
			return []string{"serve", "-config", w.stateIn("/proc/none/state")}
		}, 78, []string{"noria.hcl:2,9", "State directory cannot be used", "/proc"}},
		{"a state directory whose sockets cannot have names", func(w *world) []string {
			return []string{"config", "validate", w.stateIn(strings.Repeat("long", 12))}
		}, 78, []string{"noria.hcl:2,9", "Path of the sockets too long", "shorter by"}},
		{"a client key that others can read", func(w *world) []string {
			w.write("state/client.key", "noria_x\n")
			if err := os.Chmod(w.path("state", "client.key"), 0o644); err != nil {
				w.Fatal(err)
			}
			return []string{"serve", "-config", w.config(simulatedAt("127.0.0.1:0"))}
		}, 78, []string{"read client key", "mode 0600", "remove"}},
		{"a daemon that is looked for with a configuration that is not there", func(w *world) []string {
			return []string{"status", "-config", w.path("none.hcl")}
		}, 78, []string{"No configuration file", "There is no ", "none.hcl"}},
		{"a change by a configuration that is not there", func(w *world) []string {
			return []string{"accounts", "disable", "claude/main", "-config", w.path("none.hcl")}
		}, 78, []string{"No configuration file", "none.hcl"}},
		{"a trace that is none", func(w *world) []string { return []string{"simulate", w.config("")} }, 1, []string{"line 1"}},
		{"no trace", func(w *world) []string { return []string{"simulate", w.path("none")} }, 1, []string{"no such file"}},
		{"no plugin of that name", func(w *world) []string { return []string{"plugins", "info", "acme"} }, 1, []string{"there is no plugin acme"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorld(t)
			args := c.prepare(w)
			before := w.listing()
			code, stdout, stderr := w.noria(args...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if after := w.listing(); after != before && !opens[c.rule] {
				t.Errorf("it left something behind:\n%s\nbefore:\n%s", after, before)
			}
			// Lines break anywhere.
			flat := strings.Join(strings.Fields(stdout+" "+stderr), " ")
			for _, words := range c.says {
				if !strings.Contains(flat, words) {
					t.Errorf("it does not say %q:\n%s%s", words, stdout, stderr)
				}
			}
			if trace.MatchString(stdout + stderr) {
				t.Errorf("a stack trace is shown:\n%s", stderr)
			}
		})
	}
}

// plugin writes an executable.
func (w *world) plugin(script string) string {
	w.Helper()
	path := w.path("noria-provider-acme")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		w.Fatal(err)
	}
	return path
}

// acme serves a provider by the executable at path.
func (w *world) acme(path string) string {
	return fmt.Sprintf("plugin \"acme\" {\n  path = %q\n  dev = true\n}\nprovider \"acme\" {}\n", path)
}

// stateIn writes a configuration with its state in dir.
func (w *world) stateIn(dir string) string {
	w.Helper()
	return w.write("noria.hcl", fmt.Sprintf("state {\n  dir = %q\n}\n%s", dir, simulatedAt("127.0.0.1:0")))
}

// write writes a file that is private, with its directories.
func (w *world) write(name, content string) string {
	w.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// held is an address that somebody listens on.
func (w *world) held() string {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// listening is where the daemon of a configuration serves clients.
func (w *world) listening(config string) string {
	w.Helper()
	s := w.status(config)
	if len(s.Listen) == 0 {
		w.Fatal("status: the daemon listens nowhere")
	}
	return s.Listen[0]
}

// served is what a daemon tells of itself.
type served struct {
	Listen  []string
	Streams int
}

// status asks the daemon of a configuration.
func (w *world) status(config string) served {
	w.Helper()
	code, stdout, stderr := w.noria("status", "-json", "-config", config)
	var s served
	if err := json.Unmarshal([]byte(stdout), &s); code != 0 || err != nil {
		w.Fatalf("status: exit %d %v %s", code, err, stderr)
	}
	return s
}

// listing names everything in this world.
func (w *world) listing() string {
	w.Helper()
	var all strings.Builder
	err := filepath.WalkDir(w.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil {
			fmt.Fprintln(&all, path, entry.Type())
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all.String()
}

func TestCommandsOfARunningDaemon(t *testing.T) {
	w := newWorld(t)
	config := w.config(simulatedAt("127.0.0.1:0"))
	w.serve(config)
	w.untilReady(config)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"plugins", "list", "-strict"}, 0, "bundled"},
		{[]string{"plugins", "restart", "simulated"}, 0, "ready"},
		{[]string{"status"}, 0, "simulated/a"},
		{[]string{"accounts", "disable", "simulated/a"}, 0, "simulated/a is disabled.\n"},
		{[]string{"explain", "-new", "simulated"}, 3, "No account can serve: 1 disabled. It is not known when that changes; enable an account with noria accounts enable."},
		{[]string{"accounts", "enable", "simulated/a"}, 0, "simulated/a is enabled.\n"},
		{[]string{"explain", "-new", "simulated"}, 0, "simulated/a"},
		{[]string{"reload"}, 0, "Nothing has changed.\n"},
		{[]string{"state", "export"}, 0, `"bindings":[]`},
		{[]string{"token", "show"}, 0, "\n"},
		{[]string{"sessions", "list"}, 0, "No session is bound.\n"},
		{[]string{"sessions", "list", "-provider", "nope"}, 1, `no provider "nope" is configured`},
		{[]string{"sessions", "list", "-account", "simulated/nope"}, 1, "no account simulated/nope is configured"},
		{[]string{"sessions", "list", "-account", "nope"}, 1, `no account is named "nope"`},
		{[]string{"explain", "nope"}, 1, `no session matches "nope", and no request of that id is remembered`},
		{[]string{"doctor"}, 0, "valid, and the plugins agree"},
		{[]string{"config", "show"}, 0, `provider "simulated"`},
	} {
		code, stdout, stderr := w.noria(append(c.args, "-config", config)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
	broken := w.config(simulatedAt("127.0.0.1:0") + "log {\n  level = \"loud\"\n}\n")
	code, _, stderr := w.noria("reload", "-config", broken)
	if code != 78 || !strings.Contains(stderr, "Nothing was applied") {
		t.Errorf("reload of a broken configuration: exit %d\n%s", code, stderr)
	}
}

func TestSignalsEndTheDaemon(t *testing.T) {
	for _, c := range []struct {
		rule    string
		drain   string
		signals []os.Signal
	}{
		{"the drain limit cuts what is left", "1ms", []os.Signal{syscall.SIGTERM}},
		{"a second signal cuts what the first one waits for", "24h", []os.Signal{syscall.SIGTERM, syscall.SIGTERM}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorld(t)
			config := w.config(fmt.Sprintf(`
listen {
  address = "127.0.0.1:0"
  auth    = "none"
}
limits {
  drain = %q
}
provider "simulated" {
  latency = "1m"
  account "a" {}
}
`, c.drain))
			d := w.serve(config)
			w.untilReady(config)
			answered := w.ask(config)
			d.told = true
			for _, s := range c.signals {
				if err := d.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				if !d.log.until("draining") {
					t.Fatal("the daemon ended without a drain")
				}
			}
			if !d.log.until("streams were cut") {
				t.Error("the daemon ended without cutting the stream")
			}
			if err := <-answered; err == nil {
				t.Error("a stream that was cut came to a good end")
			}
		})
	}
}

// ask sends a turn that takes long, and returns once it is on its way.
func (w *world) ask(config string) (answered <-chan error) {
	w.Helper()
	address := w.listening(config)
	done := make(chan error, 1)
	go func() {
		response, err := http.Post("http://"+address+"/simulated/v1/turns", "application/json", strings.NewReader(`{"session":"s","model":"m"}`))
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if err == nil && response.StatusCode != http.StatusOK {
				err = errors.New(response.Status)
			}
		}
		done <- err
	}()
	for range 500 {
		if w.status(config).Streams == 1 {
			return done
		}
	}
	w.Fatal("no stream is open")
	return nil
}
