package printable

import (
	"strings"
	"unicode/utf8"
)

// placeholder is ASCII, so that it looks the same in every terminal and log.
const placeholder = '?'

// Line returns text of at most limit bytes that can be put on one line of a terminal, a log or JSON as it is. Where [Text] shows
// what was there, Line puts one placeholder: it is for what is kept and bounded, which no escape must make longer.
func Line(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' {
			r = ' '
		}
		if r == utf8.RuneError || !shown(r) {
			r = placeholder
		}
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// IsLine reports whether Line would leave text as it is.
func IsLine(text string, limit int) bool {
	return len(text) <= limit && Line(text, limit) == text
}
