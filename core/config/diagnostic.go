package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Severity of a Diagnostic.
type Severity string

// Severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Diagnostic is a finding about a configuration file.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Summary is one line without a full stop, Detail says what to do.
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
	// Range is nil when the finding is about no place in a file.
	Range *Range `json:"range,omitempty"`
	// Snippet is the source at Range, without what may be a secret.
	Snippet *Snippet `json:"snippet,omitempty"`
}

// Range is a place in a file. Lines and columns begin with 1; columns count characters as seen.
type Range struct {
	File        string `json:"file"`
	StartLine   int    `json:"start_line"`
	StartColumn int    `json:"start_column"`
	EndLine     int    `json:"end_line"`
	EndColumn   int    `json:"end_column"`
}

// Snippet is the source that a Diagnostic is about.
type Snippet struct {
	// Context names the blocks around it, such as: provider "claude", account "work".
	Context string `json:"context,omitempty"`
	// Line is the first line of the range.
	Line string `json:"line"`
	// Start and End are the offsets of the range in Line, in bytes.
	Start int `json:"start"`
	End   int `json:"end"`
}

// Diagnostics are findings about a configuration. As an error it reads as its first one.
type Diagnostics []Diagnostic

// Sorted returns them in the order of the file, those about no place first.
func (d Diagnostics) Sorted() Diagnostics {
	sorted := slices.Clone(d)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		x, y := Range{}, Range{}
		if a.Range != nil {
			x = *a.Range
		}
		if b.Range != nil {
			y = *b.Range
		}
		return cmp.Or(cmp.Compare(x.StartLine, y.StartLine), cmp.Compare(x.StartColumn, y.StartColumn))
	})
	return sorted
}

// HasErrors reports whether one of them is an error.
func (d Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(d, func(x Diagnostic) bool { return x.Severity == SeverityError })
}

// Err returns them as an error, nil when there are only warnings.
func (d Diagnostics) Err() error {
	if !d.HasErrors() {
		return nil
	}
	return d
}

// Error reads as the first error and the number of the others.
func (d Diagnostics) Error() string {
	first, others := "", -1
	for _, x := range d {
		if x.Severity != SeverityError {
			continue
		}
		if others++; first == "" {
			first = x.String()
		}
	}
	if others > 0 {
		return fmt.Sprintf("%s, and %d more", first, others)
	}
	return first
}

// String is the diagnostic in one line.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.Range != nil {
		fmt.Fprintf(&b, "%s:%d,%d: ", d.Range.File, d.Range.StartLine, d.Range.StartColumn)
	}
	b.WriteString(d.Summary)
	if d.Detail != "" {
		fmt.Fprintf(&b, "; %s", d.Detail)
	}
	return b.String()
}

// AsDiagnostics finds diagnostics in an error.
func AsDiagnostics(err error) (Diagnostics, bool) {
	var d Diagnostics
	ok := errors.As(err, &d)
	return d, ok
}
