// Package ansi has the styles that text has on a terminal.
package ansi

// Style is what goes before text on a terminal.
type Style string

// Styles. The zero Style is none.
const (
	Bold      Style = "\x1b[1m"
	Dim       Style = "\x1b[2m"
	Underline Style = "\x1b[4m"
	Good      Style = "\x1b[32m"
	Warn      Style = "\x1b[33m"
	Error     Style = "\x1b[31m"
)

const reset = "\x1b[0m"

// Text gives the text its style, if there is any.
func (s Style) Text(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}
