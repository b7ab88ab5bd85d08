package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/noriatest"
	"github.com/noria-dev/noria/core/internal/upstream"
)

// binaries are built once for all tests of the package that need processes.
var binaries noriatest.Binaries

func TestMain(m *testing.M) {
	built, release, err := noriatest.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = built
	code := m.Run()
	release()
	os.Exit(code)
}

// scene is a daemon in front of a scripted upstream, with Claude accounts of these names.
type scene struct {
	testing.TB
	*noriatest.Home
	upstream *upstream.Server
	accounts []string
}

func newScene(t testing.TB, accounts ...string) *scene {
	t.Helper()
	s := &scene{TB: t, Home: noriatest.NewHome(t, binaries), upstream: upstream.Start(), accounts: accounts}
	t.Cleanup(s.upstream.Close)
	for _, account := range accounts {
		s.Write(account+".token", token(account))
		s.upstream.Script(token(account), upstream.OK().WithTelemetry())
		s.upstream.SetUsage(token(account), upstream.Usage{FiveHour: 10, Weekly: 10})
	}
	s.configure(accounts...)
	return s
}

func token(account string) string { return "sk-ant-oat01-made-up-" + account }

// configure writes the configuration with these accounts.
func (s *scene) configure(accounts ...string) {
	s.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%sprovider \"claude\" {\n  upstream = %q\n", hostConfiguration, s.upstream.URL)
	for _, account := range accounts {
		text.WriteString(s.account(account))
	}
	text.WriteString("}\n")
	s.Write("noria.hcl", text.String())
}

// hostConfiguration is that of a daemon in a home of its own.
const hostConfiguration = "listen {\n  address = \"127.0.0.1:0\"\n}\nstate {\n  dir = \"state\"\n}\n"

// account is the block of an account.
func (s *scene) account(name string) string {
	return fmt.Sprintf("  account %q {\n    credential {\n      file = %q\n    }\n  }\n", name, s.Path(name+".token"))
}

func (s *scene) Helper() { s.TB.Helper() }

// do runs a command that must succeed.
func (s *scene) do(arguments ...string) string {
	s.Helper()
	out, errs, code := s.Run(arguments...)
	if code != 0 {
		s.Fatalf("noria %v: exit %d\n%s%s", arguments, code, out, errs)
	}
	return out
}

// asked is what a command that must succeed says as JSON.
func asked[T any](s *scene, arguments ...string) (answer T) {
	s.Helper()
	out := s.do(append(arguments, "-json")...)
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		s.Fatalf("noria %v: %v in %s", arguments, err, out)
	}
	return answer
}

// client sends turns to a daemon.
type client struct {
	http *http.Client
	url  string
	key  string
}

func clientOf(d *noriatest.Daemon) *client {
	return &client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		url:  "http://" + d.Address + "/claude/v1/messages",
		key:  d.Key(),
	}
}

// turn sends one streamed turn and gives status and body.
func (c *client) turn(session, model string) (status int, body string, err error) {
	request, err := json.Marshal(map[string]any{
		"model": model, "max_tokens": 64, "stream": true,
		"messages": []map[string]string{{"role": "user", "content": "hello"}},
	})
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.url, bytes.NewReader(request))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Noria-Key", c.key)
	if session != "" {
		req.Header.Set("X-Claude-Code-Session-Id", session)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// served sends a turn that must be served.
func (c *client) served(t testing.TB, session string) {
	t.Helper()
	status, body, err := c.turn(session, "claude-sonnet-5")
	if err != nil || status != http.StatusOK || !strings.Contains(body, "message_stop") {
		t.Fatalf("turn of session %s: status %d, error %v, body %.300s", session, status, err, body)
	}
}

// servedBy counts the turns that each account served upstream.
func (s *scene) servedBy() map[string]int {
	count := map[string]int{}
	for _, r := range s.upstream.Turns() {
		if r.Status == http.StatusOK {
			count[strings.TrimPrefix(r.Token, "sk-ant-oat01-made-up-")]++
		}
	}
	return count
}

// The first answer makes its account known, and known ones go before others: simultaneous is what nobody has answered yet.
func TestSimultaneousFirstRequestsSpreadOverEqualAccounts(t *testing.T) {
	s := newScene(t, "ada", "ben", "cyn")
	all := make(chan struct{})
	for _, account := range s.accounts {
		s.upstream.Script(token(account), upstream.OK().WithTelemetry().After(all))
	}
	d := s.Start().Ready()
	c := clientOf(d)
	const sessions = 200
	var wg sync.WaitGroup
	failures := make(chan string, sessions)
	for i := range sessions {
		wg.Go(func() {
			status, _, err := c.turn(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "claude-sonnet-5")
			if err != nil || status != http.StatusOK {
				failures <- fmt.Sprintf("session %d: status %d, error %v", i, status, err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !s.upstream.Wait(ctx.Done(), func(arrived []upstream.Request) bool { return len(arrived) == sessions }) {
		t.Error("not all requests arrived")
	}
	close(all)
	wg.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	for _, account := range s.accounts {
		if n := s.servedBy()[account]; n < sessions/3 || n > sessions/3+1 {
			t.Errorf("account %s served %d of %d first requests, want a third: %v", account, n, sessions, s.servedBy())
		}
	}
}

func TestParallelFirstRequestsOfASessionEndOnOneAccount(t *testing.T) {
	s := newScene(t, "ada", "ben", "cyn")
	d := s.Start().Ready()
	c := clientOf(d)
	for i := range 20 {
		s.upstream.Forget()
		session := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		var wg sync.WaitGroup
		for _, model := range []string{"claude-sonnet-5", "claude-sonnet-5", "claude-haiku-4-5"} {
			wg.Go(func() {
				if status, _, err := c.turn(session, model); err != nil || status != http.StatusOK {
					t.Errorf("session %s: status %d, error %v", session, status, err)
				}
			})
		}
		wg.Wait()
		if len(s.servedBy()) != 1 {
			t.Errorf("session %s was served by %v, want one account", session, s.servedBy())
		}
	}
}

func TestSessionStaysAndMovesOnlyWhenItsAccountCannotServe(t *testing.T) {
	s := newScene(t, "ada", "ben")
	d := s.Start().Ready()
	c := clientOf(d)
	const session = "00000000-0000-4000-8000-000000000001"
	c.served(t, session)
	home := only(t, s.servedBy())
	other := map[string]string{"ada": "ben", "ben": "ada"}[home]

	s.upstream.SetUsage(token(home), upstream.Usage{FiveHour: 95, Weekly: 95})
	s.upstream.Forget()
	c.served(t, session)
	c.served(t, session)
	if got := only(t, s.servedBy()); got != home {
		t.Fatalf("the session went to %s although %s serves", got, home)
	}

	s.upstream.Script(token(home), upstream.Quota("five_hour", time.Now().Add(time.Hour)))
	s.upstream.Forget()
	c.served(t, session)
	if got := only(t, s.servedBy()); got != other {
		t.Fatalf("after a rejection the session is on %s, want %s", got, other)
	}

	s.upstream.Script(token(home), upstream.OK().WithTelemetry())
	s.upstream.SetUsage(token(home), upstream.Usage{FiveHour: 1, Weekly: 1})
	s.upstream.Forget()
	c.served(t, session)
	if got := only(t, s.servedBy()); got != other {
		t.Fatalf("the session went back to %s", got)
	}
}

func TestBindingSurvivesKill(t *testing.T) {
	s := newScene(t, "ada", "ben", "cyn")
	d := s.Start().Ready()
	c := clientOf(d)
	homes := map[string]string{}
	for i := range 12 {
		session := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		s.upstream.Forget()
		c.served(t, session)
		homes[session] = only(t, s.servedBy())
	}
	d.Kill()
	d = s.Start().Ready()
	c = clientOf(d)
	for session, home := range homes {
		s.upstream.Forget()
		c.served(t, session)
		if got := only(t, s.servedBy()); got != home {
			t.Errorf("session %s is on %s after the kill, was on %s", session, got, home)
		}
	}
}

func TestReloadAppliesTheDifferenceOrNothing(t *testing.T) {
	s := newScene(t, "ada", "ben")
	d := s.Start().Ready()
	c := clientOf(d)
	const session = "00000000-0000-4000-8000-000000000001"
	c.served(t, session)
	home := only(t, s.servedBy())
	other := map[string]string{"ada": "ben", "ben": "ada"}[home]

	good, err := os.ReadFile(s.Path("noria.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	s.Write("noria.hcl", string(good)+"\nlistne {}\n")
	if out, errs, code := s.Run("reload"); code == 0 || !strings.Contains(out+errs, "listne") {
		t.Errorf("reload of a bad configuration: code %d, output %s%s", code, out, errs)
	}
	s.upstream.Forget()
	c.served(t, session)
	if got := only(t, s.servedBy()); got != home {
		t.Errorf("after a refused reload the session is on %s, was on %s", got, home)
	}

	s.configure(other)
	if out, errs, code := s.Run("reload"); code != 0 {
		t.Fatalf("reload: code %d, output %s%s", code, out, errs)
	}
	s.upstream.Forget()
	c.served(t, session)
	if got := only(t, s.servedBy()); got != other {
		t.Errorf("after its account was removed the session is on %s, want %s", got, other)
	}
}

func TestSecondDaemonIsRefusedWithTheFirstOnesPID(t *testing.T) {
	s := newScene(t, "ada")
	d := s.Start().Ready()
	_, errs, code := s.Run("serve")
	if code != 78 {
		t.Errorf("exit code %d, want 78", code)
	}
	if !strings.Contains(errs, fmt.Sprint(d.PID())) {
		t.Errorf("the refusal does not name the first daemon's pid %d: %s", d.PID(), errs)
	}
}

func TestTakenAddressIsRefusedAndNamesANoria(t *testing.T) {
	s := newScene(t, "ada")
	d := s.Start().Ready()
	second := newScene(t, "ada")
	second.Write("noria.hcl", strings.Replace(readFile(t, second.Path("noria.hcl")), "127.0.0.1:0", d.Address, 1))
	_, errs, code := second.Run("serve")
	if code != 78 {
		t.Errorf("exit code %d, want 78", code)
	}
	if !strings.Contains(errs, "another noria") || !strings.Contains(errs, d.Address) {
		t.Errorf("the refusal does not say who holds %s: %s", d.Address, errs)
	}
}

func TestStopDrainsAndEndsWithoutError(t *testing.T) {
	s := newScene(t, "ada")
	goOn := make(chan struct{})
	s.upstream.Script(token("ada"), upstream.OK().HaltUntil(goOn))
	d := s.Start().Ready()
	c := clientOf(d)
	type result struct {
		status int
		body   string
		err    error
	}
	results := make(chan result, 1)
	go func() {
		status, body, err := c.turn("00000000-0000-4000-8000-000000000001", "claude-sonnet-5")
		results <- result{status, body, err}
	}()
	noriatest.Eventually(t, "the turn is upstream", func() bool { return len(s.upstream.Turns()) == 1 })
	stopped := make(chan int, 1)
	go func() { stopped <- d.Stop() }()
	noriatest.Eventually(t, "the daemon drains", func() bool { return strings.Contains(d.Log(), "draining") })
	close(goOn)
	if r := <-results; r.err != nil || r.status != http.StatusOK || !strings.Contains(r.body, "message_stop") {
		t.Errorf("the stream was cut by the drain: status %d, error %v", r.status, r.err)
	}
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, d.Log())
	}
}

func only(t testing.TB, served map[string]int) string {
	t.Helper()
	if len(served) != 1 {
		t.Fatalf("served by %v, want exactly one account", served)
	}
	for account := range served {
		return account
	}
	return ""
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAccountServesAgainAfterItsUserSignedIn(t *testing.T) {
	s := newScene(t, "ada")
	if err := os.Mkdir(s.Path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, s.Path("noria.hcl"))
	s.Write("noria.hcl", text[:strings.Index(text, "    credential")]+"    home = \"home\"\n  }\n}\n")
	d := s.Start().Ready()
	c := clientOf(d)
	status, body, err := c.turn("00000000-0000-4000-8000-000000000001", "claude-sonnet-5")
	if err != nil || status != http.StatusServiceUnavailable {
		t.Fatalf("a turn without any login: status %d, error %v, want 503: %s", status, err, body)
	}
	login, err := json.Marshal(map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": token("ada"), "expiresAt": time.Now().Add(time.Hour).UnixMilli(), "scopes": []string{"user:inference"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Write("home/.credentials.json", string(login))
	if out, errs, code := s.Run("accounts", "refresh"); code != 0 {
		t.Fatalf("accounts refresh: code %d: %s%s", code, out, errs)
	}
	c.served(t, "00000000-0000-4000-8000-000000000001")
}

// loginScript stands for the official client: its login writes what the real one writes.
const loginScript = `#!/bin/sh
test "$1" = auth && test "$2" = login || exit 64
printf '{"claudeAiOauth":{"accessToken":"%s","expiresAt":%s000,"scopes":["user:inference"]}}' "TOKEN" "$(($(date +%s)+3600))" >"$CLAUDE_CONFIG_DIR/.credentials.json"
chmod 600 "$CLAUDE_CONFIG_DIR/.credentials.json"
`

func TestConnectLogsInWithTheOfficialClient(t *testing.T) {
	s := newScene(t, "ada")
	if err := os.Mkdir(s.Path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	client := s.Write("official", strings.Replace(loginScript, "TOKEN", token("ada"), 1))
	if err := os.Chmod(client, 0o700); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, s.Path("noria.hcl"))
	text = strings.Replace(text, "  account", fmt.Sprintf("  client = %q\n  account", client), 1)
	s.Write("noria.hcl", text[:strings.Index(text, "    credential")]+"    home = \"home\"\n  }\n}\n")
	d := s.Start().Ready()
	c := clientOf(d)
	if status, _, err := c.turn(streamSession(1), "claude-sonnet-5"); err != nil || status != http.StatusServiceUnavailable {
		t.Fatalf("a turn without any login: status %d, error %v, want 503", status, err)
	}
	if out, errs, code := s.Run("connect", "claude/ada"); code != 0 {
		t.Fatalf("connect: code %d: %s%s", code, out, errs)
	}
	c.served(t, streamSession(1))
}

func TestClientThatCannotCarryItsKeyPrivatelyIsNotStarted(t *testing.T) {
	s := newScene(t, "ada")
	s.Write("noria.hcl", readFile(t, s.Path("noria.hcl"))+"provider \"codex\" {\n  account \"ada\" {\n    credential {\n      file = \"ada.token\"\n    }\n  }\n}\n")
	s.Start().Ready()
	_, errs, code := s.Run("run", "codex", "-native")
	if code != 4 || !strings.Contains(errs, "auth") {
		t.Errorf("run codex -native: code %d, want 4 with the remedy: %s", code, errs)
	}
}

func streamSession(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
