package cli_test

import (
	"slices"
	"strings"
	"testing"
)

func TestConnectRunsTheLoginAndReadsTheAccountAgain(t *testing.T) {
	const again = "  what was known of its quota is forgotten until it is read again; run the command again to log in\n"
	for _, c := range []struct {
		rule, account string
		code          int
		stderr        string
	}{
		{"a login that succeeds ends with 0", "claude/work", 0, ""},
		{"a login that fails ends with its own code", "claude/refused", 3,
			"Error: the login of claude/refused did not succeed: sh ended with exit code 3\n" + again},
		{"a login that Ctrl-C ends", "claude/interrupted", 130,
			"Error: the login of claude/interrupted did not succeed: sh was ended by a signal (interrupt)\n" + again},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inPrivateHome(t)
			// The adapter wants this one unset.
			t.Setenv("OTHER", "x")
			d := &fakeDaemon{}
			serve(t, d)
			code, stdout, stderr := noria(t, "connect", c.account)
			if code != c.code || (code == 0) != (stdout != "") {
				t.Errorf("exit %d, want %d: %s%s", code, c.code, stdout, stderr)
			}
			_, name, _ := strings.Cut(c.account, "/")
			line, rest, _ := strings.Cut(stderr, "\n")
			if !strings.HasPrefix(line, "Logging in to "+c.account+" with: HOME_OF_IT=/home/user/."+name+" sh -c ") || rest != c.stderr {
				t.Errorf("it says %q", stderr)
			}
			want := []string{"connect " + c.account, "connected " + c.account}
			if got := d.noted(); !slices.Equal(got, want) {
				t.Errorf("calls %v, want %v", got, want)
			}
		})
	}
}
