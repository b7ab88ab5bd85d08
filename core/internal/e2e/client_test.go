//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/internal/upstream"
)

// client is an official client.
type client interface {
	provider() string
	// arguments of one prompt without a terminal, in a new session or in the one to resume.
	arguments(resume, text string) []string
	// environment that points the client at a base URL with a key, and arguments that must come before the others.
	behind(baseURL, key string) (environment, arguments []string)
	// read finds the session and what the model said in what the client printed.
	read(printed string) (session, said string)
	// clock writes a time of day as the client prints it.
	clock(at time.Time) string
}

// run is a client process that did, or does, one prompt.
type run struct {
	world   *world
	client  client
	process *exec.Cmd
	ended   chan struct{}
	// printed is to be read when it has ended.
	printed bytes.Buffer
	// session and said are read from what it printed.
	session, said string
	// code it exited with.
	code int
}

// isolated is the environment of all clients of a world: their own homes, no telemetry, no updates, and a proxy that does
// not exist for whatever is not on loopback.
func (w *world) isolated() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "TERM=xterm-256color",
		"HOME=" + w.folder("client", "home"), "TMPDIR=" + w.folder("client", "tmp"),
		"CLAUDE_CONFIG_DIR=" + w.folder("client", "claude"), "CODEX_HOME=" + w.folder("client", "codex"),
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
	}
}

// workspace is the folder that the clients work in. Both are told to trust it.
func (w *world) workspace() string {
	folder := w.folder("client", "work")
	w.write(w.path("client", "codex", "config.toml"), quietCodex+"[projects."+quoted(folder)+"]\ntrust_level = \"trusted\"\n")
	if settings := w.path("client", "claude", ".claude.json"); !exists(settings) {
		w.write(settings, w.json(map[string]any{
			"hasCompletedOnboarding": true, "theme": "dark",
			"projects": map[string]any{folder: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
		}))
	}
	return folder
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func quoted(text string) string {
	quotedText, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quotedText)
}

// begin starts a client on one prompt; resume names the session to go on with, or is empty.
func (w *world) begin(c client, resume, text string) *run {
	w.Helper()
	environment, before := c.behind(w.recorder.url+"/"+c.provider(), w.key)
	return w.launch(c, absolute(w.T, clients, c.provider()), append(before, c.arguments(resume, text)...), environment)
}

func (w *world) launch(c client, executable string, arguments, environment []string) *run {
	w.Helper()
	r := &run{world: w, client: c, process: exec.Command(executable, arguments...), ended: make(chan struct{})}
	r.process.Dir, r.process.Env = w.workspace(), append(w.isolated(), environment...)
	r.process.Stdout, r.process.Stderr = &r.printed, &r.printed
	if err := r.process.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.process.Wait() // how it ended is in ProcessState
	}()
	// A test that fails early leaves no client behind.
	w.Cleanup(func() {
		_ = r.process.Process.Kill()
		<-r.ended
	})
	return r
}

// wait lets the client end.
func (r *run) wait() *run {
	r.world.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		_ = r.process.Process.Kill()
		<-r.ended
		r.world.Fatalf("%s did not end within %v; it printed\n%s", r.client.provider(), patience, r.printed.String())
	}
	r.code = r.process.ProcessState.ExitCode()
	r.session, r.said = r.client.read(r.printed.String())
	return r
}

// prompt does one prompt that must be answered.
func (w *world) prompt(c client, resume, text string) *run {
	w.Helper()
	r := w.begin(c, resume, text).wait()
	r.mustHaveSaid(greeting)
	return r
}

// greeting is what the upstream's good answer says.
const greeting = "Hello from the scripted upstream."

func (r *run) mustHaveSaid(text string) {
	r.world.Helper()
	if r.code != 0 || r.said != text || r.session == "" {
		r.world.Fatalf("%s exited with %d, session %q, said %q, want %q; it printed\n%s",
			r.client.provider(), r.code, r.session, r.said, text, r.printed.String())
	}
}

// promptOn makes a new session that is bound to the named account.
func (w *world) promptOn(c client, name string) (session string) {
	w.Helper()
	w.only(c.provider(), name, func() { session = w.prompt(c, "", "Say hello").session })
	if got := w.boundTo(c.provider(), session); got != name {
		w.Fatalf("session is bound to %s, the only account enabled is %s", got, name)
	}
	return session
}

// served names, in their order, the accounts at which the upstream saw turns of a session.
func (w *world) served(session string) (names []string) {
	w.Helper()
	for _, request := range w.upstream.Turns() {
		if request.Session == session {
			names = append(names, w.byToken(request.Token))
		}
	}
	return names
}

// forget drops what upstream and recorder noted.
func (w *world) forget() {
	w.upstream.Forget()
	w.recorder.forget()
}

// fill makes the answers of an account tell that its windows are used so far.
func (w *world) fill(provider, name string, percent float64) {
	w.upstream.SetUsage(w.named(provider, name).token, upstream.Usage{FiveHour: percent, Weekly: percent})
}

// claude is Claude Code.
type claude struct{}

func (claude) provider() string { return "claude" }

func (claude) arguments(resume, text string) []string {
	arguments := []string{"-p", "--output-format", "json"}
	if resume != "" {
		arguments = append(arguments, "--resume", resume)
	}
	return append(arguments, text)
}

func (claude) behind(baseURL, key string) (environment, arguments []string) {
	return []string{"ANTHROPIC_BASE_URL=" + baseURL, "CLAUDE_CODE_OAUTH_TOKEN=" + key, "CLAUDE_CODE_GATEWAY_HINT_HEADERS=1"}, nil
}

func (claude) read(printed string) (session, said string) {
	var result struct {
		Session string `json:"session_id"`
		Result  string `json:"result"`
	}
	if err := json.Unmarshal([]byte(printed), &result); err != nil {
		return "", ""
	}
	return result.Session, result.Result
}

func (claude) clock(at time.Time) string { return at.Format("3:04pm") }

// codex is the Codex CLI.
type codex struct{}

// quietCodex keeps the client from telemetry and updates.
const quietCodex = "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"

func (codex) provider() string { return "codex" }

func (codex) arguments(resume, text string) []string {
	arguments := []string{"exec", "--skip-git-repo-check", "--json"}
	if resume != "" {
		arguments = append(arguments, "resume", resume)
	}
	return append(arguments, text)
}

func (codex) behind(baseURL, key string) (environment, arguments []string) {
	return []string{"NORIA_KEY=" + key}, []string{
		"-c", `model_provider="noria"`,
		"-c", `model_providers.noria={name="noria",base_url=` + quoted(baseURL) + `,env_http_headers={"x-noria-key"="NORIA_KEY"}}`,
	}
}

func (codex) read(printed string) (session, said string) {
	for line := range strings.Lines(printed) {
		var event struct {
			Thread  string `json:"thread_id"`
			Message string `json:"message"`
			Item    struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"item"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			continue // what the client tells people
		}
		switch {
		case event.Thread != "":
			session = event.Thread
		case event.Item.Type == "agent_message":
			said = event.Item.Text
		case event.Message != "":
			said = event.Message
		}
	}
	return session, said
}

func (codex) clock(at time.Time) string { return at.Format("3:04 PM") }
