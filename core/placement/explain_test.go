package placement

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/quota"
)

var update = flag.Bool("update", false, "write golden files")

func TestExplain(t *testing.T) {
	good := func(name string) *quota.Account { return read(name, 10, 4, 10, 100) }
	for name, c := range map[string]struct {
		accounts []*quota.Account
		bound    int
		req      Request
	}{
		"known": {accounts: []*quota.Account{
			read("personal", 60, 2.5, 60, 100), good("work"), unread("new"),
			with(good("off"), func(a *quota.Account) { a.Enabled = false }),
			with(good("other"), func(a *quota.Account) { a.Models = []string{"n"} }),
			blocked(good("spent"), quotaGone), blocked(good("out"), signedOut), blocked(good("busy"), throttled),
			read("shown", 100, 1, 20, 100), good("before"),
		}, req: tried("before")},
		"tie":      {accounts: []*quota.Account{good("a"), good("b"), good("c")}},
		"only":     {accounts: []*quota.Account{good("a")}},
		"cautious": {accounts: []*quota.Account{unread("a"), stale("b", 100), stale("c", 50)}},
		"bound":    {accounts: []*quota.Account{good("a"), good("b")}, bound: 2},
		"unavailable": {accounts: []*quota.Account{
			blocked(unread("spent"), quota.Rejection{Cause: quota.CauseQuota, WindowID: "5h"}),
			blocked(good("out"), signedOut),
			blocked(good("plain"), quota.Rejection{Cause: quota.CauseNotEntitled, Model: "m"}),
		}},
		"signed-out": {accounts: []*quota.Account{blocked(good("out"), signedOut)}},
		"none":       {},
	} {
		t.Run(name, func(t *testing.T) {
			view := View{Accounts: c.accounts, Fit: DefaultFit}
			if c.bound > 0 {
				view.Bound = c.accounts[c.bound-1]
			}
			if c.req.At.IsZero() {
				c.req = request()
			}
			got := Explain(Decide(view, c.req))
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("explanation differs (run with -update if it should):\n%s", diff)
			}
		})
	}
}

func TestEveryCauseHasOneWording(t *testing.T) {
	for _, cause := range []string{
		string(quota.CauseQuota), string(quota.CauseAuth), string(quota.CauseNotEntitled), string(quota.CauseThrottle),
		string(quota.CauseNetwork), string(quota.CauseCredential), FilteredDisabled, FilteredModel, FilteredTried,
	} {
		words := inWords(cause)
		if words == cause && cause != FilteredDisabled {
			t.Errorf("%s has no words", cause)
		}
		counted, described := causes(map[string]int{cause: 2}), describe(quota.Blocker{Cause: quota.Cause(cause)})
		if counted != "2 "+words || described != words {
			t.Errorf("%s is %q when counted and %q when described", cause, counted, described)
		}
	}
}
