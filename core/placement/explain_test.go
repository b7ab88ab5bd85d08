package placement

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		"estimates": {accounts: []*quota.Account{
			with(good("busy"), func(a *quota.Account) {
				a.Begin("m")
				a.Complete("m", now)
				a.Begin("m")
				a.Cadence.Add("m", 3, now)
			}),
			with(good("rolled"), func(a *quota.Account) { a.Settle(now.Add(4 * time.Hour)) }),
		}},
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

func TestAnUnknownWindowHasNoNumbers(t *testing.T) {
	unknown, err := json.Marshal(Term{Window: "five_hour", Name: "5h", State: string(quota.StateUnknown)})
	if want := `{"name":"5h","state":"unknown","window":"five_hour"}`; err != nil || string(unknown) != want {
		t.Errorf("unknown is %s %v, want %s", unknown, err, want)
	}
	known := Term{Window: "five_hour", Name: "5h", State: string(quota.StateObserved), HasObserved: true, Kappa: 0.5}
	raw, err := json.Marshal(known)
	if err != nil || !strings.Contains(string(raw), `"used":0`) {
		t.Errorf("an observed 0 is %s %v", raw, err)
	}
	var back Term
	if err := json.Unmarshal(raw, &back); err != nil || back != known {
		t.Errorf("%s is read as %+v %v", raw, back, err)
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
		counted, described := CausesInWords(map[string]int{cause: 2}), Describe(quota.Blocker{Cause: quota.Cause(cause)})
		if counted != "2 "+words || described != words {
			t.Errorf("%s is %q when counted and %q when described", cause, counted, described)
		}
	}
}
