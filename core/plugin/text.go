package plugin

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// placeholder stands for what may not be shown: control and format characters, and what is no UTF-8. It is ASCII, so
// that it looks the same in every terminal and log.
const placeholder = '?'

// printable returns text of at most limit bytes that can be put on one line of a terminal, a log or JSON as it is.
func printable(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' {
			r = ' '
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = placeholder
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isPrintable reports whether printable would leave text as it is.
func isPrintable(text string, limit int) bool {
	return len(text) <= limit && printable(text, limit) == text
}

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	reasonPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	envPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)
