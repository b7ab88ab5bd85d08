package agent_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/internal/noriatest"
)

// accountsNow are the daemon's accounts by name.
func (s *scene) accountsNow() map[string]api.Account {
	s.Helper()
	accounts := map[string]api.Account{}
	for _, account := range asked[[]api.Account](s, "accounts", "list") {
		accounts[account.Name] = account
	}
	return accounts
}

func TestHomesThatCannotBeReadAreShownAndOthersServe(t *testing.T) {
	s := newScene(t, "good")
	home := func(name string) string {
		return fmt.Sprintf("  account %q {\n    home = %q\n  }\n", name, s.Path(name))
	}
	s.Write("noria.hcl", hostConfiguration+fmt.Sprintf("provider \"claude\" {\n  upstream = %q\n%s%s%s%s}\n", s.upstream.URL,
		s.account("good"), home("missing"), home("broken"), home("pipe")))
	s.Write("broken/.credentials.json", `{"claudeAiOauth": {`)
	if err := os.MkdirAll(s.Path("pipe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.Path("pipe", ".credentials.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := s.Start().Ready()
	noriatest.Eventually(t, "every home was looked at", func() bool {
		accounts := s.accountsNow()
		return accounts["missing"].AuthDetail != "" && accounts["broken"].AuthDetail != "" && accounts["pipe"].AuthDetail != ""
	})
	accounts := s.accountsNow()
	for _, c := range []struct{ name, auth, says string }{
		{"good", "unknown", ""},
		{"missing", "signed_out", "noria connect claude/missing"},
		{"broken", "unavailable", "not the JSON that was expected"},
		{"pipe", "unavailable", "not a regular file"},
	} {
		a := accounts[c.name]
		if a.Auth != c.auth || !strings.Contains(a.AuthDetail, c.says) || a.Usable != (c.says == "") {
			t.Errorf("%s: auth %q, detail %q, usable %v", c.name, a.Auth, a.AuthDetail, a.Usable)
		}
	}
	for _, args := range [][]string{{"status"}, {"accounts"}, {"doctor"}} {
		stdout, _, _ := d.Run(args...)
		if !strings.Contains(stdout, "login unavailable") || !strings.Contains(stdout, s.Path("broken")) {
			t.Errorf("noria %v does not tell of the broken home:\n%s", args, stdout)
		}
	}
	c := clientOf(d)
	for i := range 8 {
		c.served(t, fmt.Sprintf("session-%d", i))
	}
	if by := s.servedBy(); by["good"] != 8 {
		t.Errorf("served by %v", by)
	}

	s.Write("broken/.credentials.json", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q}}`, token("broken")))
	if _, stderr, code := d.Run("accounts", "refresh", "claude/broken"); code != 0 {
		t.Fatal(stderr)
	}
	if a := s.accountsNow()["broken"]; !a.Usable || a.AuthDetail != "" {
		t.Errorf("after it was mended: auth %q, detail %q, usable %v", a.Auth, a.AuthDetail, a.Usable)
	}
}

func TestAnAccountThatAReloadAddsIsLookedAt(t *testing.T) {
	s := newScene(t, "good")
	d := s.Start().Ready()
	s.Write("noria.hcl", hostConfiguration+fmt.Sprintf("provider \"claude\" {\n  upstream = %q\n%s  account \"missing\" {\n    home = %q\n  }\n}\n",
		s.upstream.URL, s.account("good"), s.Path("missing")))
	if _, stderr, code := d.Run("reload"); code != 0 {
		t.Fatal(stderr)
	}
	noriatest.Eventually(t, "the new home was looked at", func() bool {
		a := s.accountsNow()["missing"]
		return a.Auth == "signed_out" && !a.Usable
	})
}

func TestALoginThatIsThereAgainServesAgain(t *testing.T) {
	s := newScene(t, "ada")
	d := s.Start().Ready()
	c := clientOf(d)
	c.served(t, "s")
	refresh := func() {
		t.Helper()
		if _, stderr, code := d.Run("accounts", "refresh"); code != 0 {
			t.Fatal(stderr)
		}
	}

	if err := os.Remove(s.Path("ada.token")); err != nil {
		t.Fatal(err)
	}
	refresh() // or its lease would go on for minutes
	status, body, err := c.turn("s", "claude-sonnet-5")
	if err != nil || status != http.StatusServiceUnavailable {
		t.Fatalf("without a login: status %d, error %v, %s", status, err, body)
	}
	if blockers := s.accountsNow()["ada"].Blockers; len(blockers) != 1 {
		t.Fatalf("blockers %+v", blockers)
	}

	s.Write("ada.token", token("ada")) // the same login as before
	refresh()
	if a := s.accountsNow()["ada"]; !a.Usable || len(a.Blockers) != 0 {
		t.Errorf("usable %v, blockers %+v", a.Usable, a.Blockers)
	}
	c.served(t, "s")
}

func TestARefusedConfigurationOfAPluginIsShownWithItsLine(t *testing.T) {
	s := newScene(t)
	s.Write("noria.hcl", hostConfiguration+"provider \"claude\" {\n  upstream = \"http://192.0.2.1\"\n  account \"work\" {\n  }\n}\nprovider \"simulated\" {\n  account \"a\" {\n  }\n}\n")
	d := s.Start().Ready()
	noriatest.Eventually(t, "the log tells of both findings", func() bool {
		return strings.Contains(d.Log(), "Invalid upstream") && strings.Contains(d.Log(), "Account has no login")
	})
	for _, words := range []string{"noria.hcl:8,14", `upstream = "http://192.0.2.1"`, "^^^^^^^^^^^^^^^^^^", "noria.hcl:9,3", "noria config validate"} {
		if !strings.Contains(d.Log(), words) {
			t.Errorf("the log does not say %q:\n%s", words, d.Log())
		}
	}
	stdout, _, code := d.Run("status")
	if code != 0 || !strings.Contains(stdout, `claude: its adapter is not ready (failed), see "noria plugins list"`) {
		t.Errorf("status: code %d\n%s", code, stdout)
	}
}
