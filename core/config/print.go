package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/noria-dev/noria/core/internal/ansi"
)

const detailWidth = 78

// Write prints all diagnostics for people, in the order of the file: what, where with the source, what to do. Colour is for terminals only.
func (d Diagnostics) Write(w io.Writer, colour bool) error {
	p := printer{Writer: bufio.NewWriter(w), colour: colour}
	for i, x := range d.Sorted() {
		if i > 0 {
			p.WriteString("\n")
		}
		p.diagnostic(x)
	}
	return p.Flush()
}

type printer struct {
	*bufio.Writer // keeps the first error until Flush
	colour        bool
}

func (p printer) styled(style ansi.Style, text string) string {
	if !p.colour {
		return text
	}
	return style.Text(text)
}

func (p printer) diagnostic(d Diagnostic) {
	label := p.styled(ansi.Error, "Error")
	if d.Severity == SeverityWarning {
		label = p.styled(ansi.Warn, "Warning")
	}
	fmt.Fprintf(p, "%s: %s\n", label, p.styled(ansi.Bold, d.Summary))
	if r := d.Range; r != nil {
		fmt.Fprintf(p, "\n  on %s:%d,%d", r.File, r.StartLine, r.StartColumn)
		if d.Snippet != nil && d.Snippet.Context != "" {
			fmt.Fprintf(p, ", in %s", d.Snippet.Context)
		}
		p.WriteString(":\n")
		p.snippet(r.StartLine, d.Snippet)
	}
	if d.Detail != "" {
		fmt.Fprintf(p, "\n%s", wrap(d.Detail, detailWidth))
	}
}

func (p printer) snippet(number int, s *Snippet) {
	if s == nil || s.Start > s.End || s.End > len(s.Line) {
		return
	}
	margin := fmt.Sprintf("%5d: ", number)
	before, marked, after := s.Line[:s.Start], s.Line[s.Start:s.End], s.Line[s.End:]
	fmt.Fprintf(p, "%s%s%s%s\n", margin, before, p.styled(ansi.Underline, marked), after)
	if !p.colour {
		fmt.Fprintf(p, "%s%s\n", strings.Repeat(" ", len(margin)+utf8.RuneCountInString(before)),
			strings.Repeat("^", max(utf8.RuneCountInString(marked), 1)))
	}
}

// wrap breaks text at spaces into lines of at most width characters, longer words aside.
func wrap(text string, width int) string {
	var b strings.Builder
	length := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case length == 0:
		case length+1+n > width:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += n
	}
	b.WriteByte('\n')
	return b.String()
}
