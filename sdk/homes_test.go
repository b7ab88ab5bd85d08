package sdk

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOneHomeIsOneAccount(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	homes := map[string]Path{
		"first": Path(dir), "second": Path(filepath.Join(dir, "other")), "slash": Path(dir + "/"), "link": Path(link), "none": "", "neither": "",
		"absent": "/made-up", "twin": "/made-up",
	}
	var accounts []Account
	for _, name := range []string{"first", "second", "slash", "link", "none", "neither", "absent", "twin"} {
		accounts = append(accounts, Account{Name: name})
	}
	found := map[string]string{}
	for _, d := range SharedHomes(accounts, "home", func(a Account) Path { return homes[a.Name] }) {
		if d.Severity != SeverityError || d.Attribute != "home" || d.Detail == "" {
			t.Errorf("finding %+v", d)
		}
		found[d.Account] = d.Summary
	}
	want := map[string]string{
		"slash": `Account has the login of "first"`, "link": `Account has the login of "first"`, "twin": `Account has the login of "absent"`,
	}
	for name, summary := range want {
		if found[name] != summary {
			t.Errorf("%s: %q, want %q", name, found[name], summary)
		}
	}
	if len(found) != len(want) {
		t.Errorf("found %v", found)
	}
}
