package state

import (
	"errors"
	"testing"

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
