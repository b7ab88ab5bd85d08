// Package printable makes text from outside safe to show: on a terminal, in a log line, in a table.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s with everything that a terminal or a reader could be deceived by written as an escape: control
// characters, invalid UTF-8, separators that break lines, invisible and direction-changing characters. Nothing else is
// changed.
func Text(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[s[0]>>4])
			b.WriteByte(hexDigits[s[0]&15])
		case shown(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

const hexDigits = "0123456789abcdef"

// Bounded is Text of at most limit characters; what is longer ends in an ellipsis.
func Bounded(s string, limit int) string {
	// An escape only grows a character, so no more than limit characters of s are ever needed.
	for i, n := 0, 0; i < len(s); n++ {
		if n == limit {
			s = s[:i] + "…"
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	s = Text(s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	return string(runes[:limit-1]) + "…"
}

func clean(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !shown(r) {
			return false
		}
	}
	return true
}

func shown(r rune) bool {
	// Format characters hide text or turn its direction; unicode.IsPrint excludes them with the controls and all
	// spaces but the plain one.
	return unicode.IsPrint(r)
}
