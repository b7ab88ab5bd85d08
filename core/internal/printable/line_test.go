package printable_test

import (
	"os"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/internal/printable"
)

func TestLineReplacesWhatDeceivesAndKeepsItsLimit(t *testing.T) {
	for _, c := range []struct {
		rule, in string
		limit    int
		want     string
	}{
		{"plain text stays", "größer 漢字 – ok", 100, "größer 漢字 – ok"},
		{"terminal escapes", "\x1b[2Jcleared", 100, "?[2Jcleared"},
		{"a tab is a space", "a\tb", 100, "a b"},
		{"line breaks", "a\r\nb", 100, "a??b"},
		{"invalid UTF-8", "a\xffb", 100, "a?b"},
		{"direction changes", "\u202eb", 100, "?b"},
		{"no character is cut in two", "漢字", 5, "漢"},
		{"the limit is of bytes", "abc", 3, "abc"},
		{"nothing", "abc", 0, ""},
	} {
		got := printable.Line(c.in, c.limit)
		if got != c.want || !printable.IsLine(got, c.limit) || printable.IsLine(c.in, c.limit) != (c.in == c.want) {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestHostileStringsBecomeLines(t *testing.T) {
	raw, err := os.ReadFile("testdata/escapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if got := printable.Line(line, 1000); !printable.IsLine(got, 1000) {
			t.Errorf("%q became %q", line, got)
		}
	}
}
