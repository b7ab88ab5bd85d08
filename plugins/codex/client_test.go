package codex

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// TestMain also plays the official client: a script starts this executable again, with what it is to do in variables.
func TestMain(m *testing.M) {
	if replies := os.Getenv("FAKE_CODEX_REPLIES"); replies != "" {
		os.Exit(playCodex(replies))
	}
	goleak.VerifyTestMain(m)
}

// playCodex is app-server: it answers each call with the next recorded reply to that method, after some notifications,
// and renews the login when it is told to and asked about the account.
func playCodex(path string) int {
	var replies map[string][]map[string]json.RawMessage
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &replies) != nil {
		return 70
	}
	log, err := os.OpenFile(os.Getenv("FAKE_CODEX_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 70
	}
	defer log.Close()
	fmt.Fprintln(log, "start", strings.Join(os.Args[1:], " "), os.Getenv("OPENAI_API_KEY"), os.Getenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE"))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call struct {
			ID     *int
			Method string
			Params json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &call) != nil {
			return 70
		}
		fmt.Fprintln(log, call.Method, string(call.Params))
		if call.ID == nil {
			continue
		}
		if renewed := os.Getenv("FAKE_CODEX_RENEWED"); renewed != "" && call.Method == "account/read" {
			if os.WriteFile(filepath.Join(os.Getenv("CODEX_HOME"), "auth.json"), []byte(renewed), 0o600) != nil {
				return 70
			}
		}
		reply := map[string]json.RawMessage{"error": json.RawMessage(`{"code":-32600,"message":"CANARY not recorded"}`)}
		if recorded := replies[call.Method]; len(recorded) > 0 {
			reply, replies[call.Method] = recorded[0], recorded[min(1, len(recorded)-1):]
		}
		reply["id"], _ = json.Marshal(*call.ID)
		line, err := json.Marshal(reply)
		if err != nil {
			return 70
		}
		for range 20 {
			fmt.Println(`{"method":"account/updated","params":{"authMode":"chatgpt","planType":"plus"}}`)
		}
		fmt.Println(string(line))
	}
	return 0
}

// fakeClient makes an official client whose app-server replies by a file of testdata, and returns its path and that of its
// log. renewed is what it writes as its login; empty: it renews nothing.
func fakeClient(t *testing.T, replies, renewed string) (path, log string) {
	t.Helper()
	dir := t.TempDir()
	path, log = filepath.Join(dir, "codex"), filepath.Join(dir, "log")
	recorded, err := filepath.Abs(filepath.Join("testdata/appserver", replies+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return path, writeClient(t, path, log, recorded, renewed)
}

func writeClient(t *testing.T, path, log, recorded, renewed string) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nFAKE_CODEX_REPLIES='%s' FAKE_CODEX_LOG='%s' FAKE_CODEX_RENEWED='%s' exec '%s' \"$@\"\n",
		recorded, log, renewed, os.Args[0])
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return log
}

// calls gives the lines of the log that begin so.
func calls(t *testing.T, log, prefix string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool { return !strings.HasPrefix(line, prefix) })
}

var now = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)

// token makes a token that says when it ends and whose it is, and holds a canary.
func token(expiresAt time.Time, name string) string {
	part := func(v any) string {
		data, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]string{"alg": "none"}) + "." + part(map[string]any{
		"exp": expiresAt.Unix(), "name": name, "https://api.openai.com/auth": map[string]string{"chatgpt_account_id": "acct_claimed"},
	}) + ".CANARY"
}

func loginFile(accessToken string) string {
	return fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"access_token":%q,"refresh_token":"CANARY-refresh","account_id":"acct_a"}}`, accessToken)
}

const keyFile = `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-CANARY"}`

// homeWith makes a CODEX_HOME with that login; empty: with none.
func homeWith(t *testing.T, login string) string {
	t.Helper()
	return adaptertest.NewHome(t, "auth.json", login)
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
