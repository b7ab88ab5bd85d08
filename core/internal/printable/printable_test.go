package printable_test

import (
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/noria-dev/noria/core/internal/printable"
)

func TestTextEscapesWhatDeceives(t *testing.T) {
	for _, c := range []struct{ rule, in, want string }{
		{"plain text stays", "Claude größer 漢字 – ok", "Claude größer 漢字 – ok"},
		{"terminal escapes", "\x1b[2J\x1b[Hcleared", `\x1b[2J\x1b[Hcleared`},
		{"C1 controls", "\u009b31mred", `\u009b31mred`},
		{"line breaks and tabs", "a\r\n\tb", `a\r\n\tb`},
		{"NUL and backspace", "a\x00\bb", `a\x00\bb`},
		{"direction changes", "\u202egnirts\u202c", `\u202egnirts\u202c`},
		{"zero width", "a\u200bb", `a\u200bb`},
		{"line and paragraph separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"byte order mark", "\ufeffa", `\ufeffa`},
		{"invalid UTF-8", "a\xff\xfeb", `a\xff\xfeb`},
		{"no-break space is not a space", "a\u00a0b", `a\u00a0b`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := printable.Text(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHostileStringsBecomeOnePrintableLine(t *testing.T) {
	raw, err := os.ReadFile("testdata/escapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		for _, r := range printable.Text(line) {
			if !unicode.IsPrint(r) {
				t.Errorf("%q lets %U through", line, r)
			}
		}
	}
}

func TestBoundedKeepsItsLimit(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 10, "short"},
		{"exactly10!", 10, "exactly10!"},
		{"longer than ten", 10, "longer th…"},
		{"\x1b\x1b\x1b\x1b", 10, `\x1b\x1b\x…`[:9] + "…"},
		{"漢字漢字漢", 3, "漢字…"},
	} {
		got := printable.Bounded(c.in, c.limit)
		if got != c.want || utf8.RuneCountInString(got) > c.limit {
			t.Errorf("Bounded(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}
