package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/noria-dev/noria/core/internal/ansi"
	"github.com/noria-dev/noria/core/internal/printable"
)

// Characters that a cell may have; the last column has room for a sentence.
const (
	maxCell = 60
	maxLast = 200
)

// table aligns columns of text. Every cell is made printable; a note is a line of its own below a row.
type table struct {
	header []string
	rows   []row
}

type row struct {
	cells []string
	// style of the cell with that index.
	style map[int]ansi.Style
	notes []string
}

// add appends a row and returns it for styles and notes.
func (t *table) add(cells ...string) *row {
	for i, cell := range cells {
		limit := maxCell
		if i == len(t.header)-1 {
			limit = maxLast
		}
		cells[i] = printable.Bounded(cell, limit)
		if cells[i] == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, row{cells: cells, style: map[int]ansi.Style{}})
	return &t.rows[len(t.rows)-1]
}

// note adds a line below the last row.
func (r *row) note(format string, args ...any) {
	r.notes = append(r.notes, printable.Text(fmt.Sprintf(format, args...)))
}

// write prints the table; style paints one cell.
func (t *table) write(w io.Writer, style func(style ansi.Style, text string) string) error {
	widths := make([]int, len(t.header))
	for i, name := range t.header {
		widths[i] = utf8.RuneCountInString(name)
	}
	for _, r := range t.rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line(&b, t.header, widths, func(_ int, text string) string { return style(ansi.Bold, text) })
	for _, r := range t.rows {
		line(&b, r.cells, widths, func(i int, text string) string { return style(r.style[i], text) })
		for _, note := range r.notes {
			fmt.Fprintf(&b, "  %s\n", style(ansi.Warn, note))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

func line(b *strings.Builder, cells []string, widths []int, paint func(int, string) string) {
	gap := 0
	for i, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			b.WriteString(strings.Repeat(" ", gap))
			b.WriteString(paint(i, cell))
			gap = -utf8.RuneCountInString(cell)
		}
		gap += widths[i] + 2
	}
	b.WriteByte('\n')
}

// printTable prints on standard output.
func (c *command) printTable(t *table) error {
	return t.write(c.program.Stdout, func(style ansi.Style, text string) string { return c.style(c.program.Stdout, style, text) })
}
