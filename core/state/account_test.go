package state

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/quota"
)

func TestTheOperatorsSwitch(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	if sequence, err := f.SetEnabled(id("a"), false, f.now); err != nil || sequence == 0 {
		t.Fatalf("switch: %d, %v", sequence, err)
	}
	f.serve("b", "claude/s", "m")
	f.recover()
	f.read("a", 10, 10)
	f.read("b", 20, 20)
	f.try("b", "claude/new", "m")
	if _, err := f.SetEnabled(id("a"), true, f.now); err != nil {
		t.Fatal(err)
	}
	f.try("a", "claude/newer", "m")
	if _, err := f.SetEnabled(id("x"), true, f.now); !errors.Is(err, ErrUnknownAccount) {
		t.Errorf("error = %v", err)
	}
}

func TestWhatEndsASignInBlocker(t *testing.T) {
	signedOut := quota.Rejection{Cause: quota.CauseAuth}
	for name, c := range map[string]struct {
		do      func(*fixture)
		blocked bool
	}{
		"nothing": {func(*fixture) {}, true},
		"a read":  {func(f *fixture) { f.read("a", 0, 0) }, true},
		"the same login": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
		}, true},
		"the same login after a restart": {func(f *fixture) {
			f.recover()
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
		}, true},
		"another login": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "two", f.now)
			f.must(err)
		}, false},
		"a sign-in": {func(f *fixture) {
			_, err := f.ClearAuth(id("a"), "", f.now)
			f.must(err)
		}, false},
		"the switch": {func(f *fixture) {
			_, err := f.SetEnabled(id("a"), true, f.now)
			f.must(err)
		}, false},
		"the configuration, off and on": {func(f *fixture) {
			f.configs[0].Enabled = false
			f.must(f.ApplyAccounts(f.configs, f.now))
			f.configs[0].Enabled = true
			f.must(f.ApplyAccounts(f.configs, f.now))
		}, false},
		"a reload that changes nothing": {func(f *fixture) { f.must(f.ApplyAccounts(f.configs, f.now)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			_, err := f.ClearAuth(id("a"), "one", f.now)
			f.must(err)
			f.reject(f.try("a", "claude/s", "m"), signedOut)
			c.do(f)
			for range 2 { // and so it stays after a restart
				if _, d := f.ask("claude/s", "m"); d.Placed == c.blocked {
					t.Errorf("placed %v", d.Placed)
				}
				f.recover()
			}
		})
	}
}

func TestWhatCannotBeWrittenChangesNothing(t *testing.T) {
	closed := errors.New("log closed")
	for name, change := range map[string]func(*fixture) error{
		"a sign-in":   func(f *fixture) error { _, err := f.ClearAuth(id("a"), "new", f.now); return err },
		"the switch":  func(f *fixture) error { _, err := f.SetEnabled(id("a"), true, f.now); return err },
		"a catalogue": func(f *fixture) error { _, err := f.ClearEntitlements("claude", f.now); return err },
		"the configuration": func(f *fixture) error {
			f.configs[0].Models = []string{"m"}
			return f.ApplyAccounts(f.configs, f.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			one, two := f.tryAny(), f.tryAny()
			f.reject(one, quota.Rejection{Cause: quota.CauseNotEntitled, Model: "n"})
			f.reject(two, quota.Rejection{Cause: quota.CauseAuth})
			before := f.known(t)
			f.Store.log = failingAppends{f.log, closed}
			if err := change(f); !errors.Is(err, closed) {
				t.Fatalf("error = %v", err)
			}
			if diff := cmp.Diff(before, f.known(t)); diff != "" {
				t.Errorf("it changed:\n%s", diff)
			}
			f.Store.log = f.log
			f.must(change(f))
			if f.known(t) == before {
				t.Error("it changes nothing at all")
			}
		})
	}
}

// known is what is known of the accounts.
func (f *fixture) known(t *testing.T) string {
	t.Helper()
	text, err := json.MarshalIndent(f.Accounts(f.now), "", " ")
	f.must(err)
	return string(text) + f.accounts[id("a")].generation
}

// failingAppends is a log that takes nothing.
type failingAppends struct {
	Log
	err error
}

func (l failingAppends) Append(...[]byte) (uint64, error) { return 0, l.err }

func TestACatalogueEndsWhatAnAccountIsNotEntitledTo(t *testing.T) {
	f := open(t, "a")
	f.reject(f.try("a", "claude/s", "m"), quota.Rejection{Cause: quota.CauseNotEntitled, Model: "m"})
	f.try("", "claude/s", "m")
	if sequence, err := f.ClearEntitlements("codex", f.now); sequence != 0 || err != nil {
		t.Errorf("another provider's: %d, %v", sequence, err)
	}
	if sequence, err := f.ClearEntitlements("claude", f.now); sequence == 0 || err != nil {
		t.Errorf("cleared with %d, %v", sequence, err)
	}
	f.recover()
	f.try("a", "claude/s", "m")
}
