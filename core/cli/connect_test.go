package cli_test

import (
	"slices"
	"testing"
)

func TestConnectRunsTheLoginAndReadsTheAccountAnew(t *testing.T) {
	for _, c := range []struct {
		rule, account string
		code          int
	}{
		{"a login that succeeds ends with 0", "claude/work", 0},
		{"a login that fails ends with its own code", "claude/refused", 3},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inPrivateHome(t)
			// The adapter wants this one unset.
			t.Setenv("OTHER", "x")
			d := &fakeDaemon{}
			serve(t, d)
			if code, stdout, stderr := noria(t, "connect", c.account); code != c.code {
				t.Errorf("exit %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
			want := []string{"connect " + c.account, "connected " + c.account}
			if got := d.noted(); !slices.Equal(got, want) {
				t.Errorf("calls %v, want %v", got, want)
			}
		})
	}
}
