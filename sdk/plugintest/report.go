package plugintest

import (
	"fmt"
	"io"
	"strings"
)

// Report is what the suite found.
type Report struct {
	// Name and Version that the adapter described itself with; empty when it could not be asked.
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Checks  []Check `json:"checks"`
}

// Check is one rule of the protocol, with what is wrong.
type Check struct {
	Name     string    `json:"name"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem says what was found and what to do about it. It never holds a credential.
type Problem struct {
	What string `json:"what"`
	Fix  string `json:"fix"`
}

// Passed reports whether there is no problem.
func (r Report) Passed() bool {
	for _, c := range r.Checks {
		if len(c.Problems) > 0 {
			return false
		}
	}
	return len(r.Checks) > 0
}

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	var out strings.Builder
	if r.Name != "" {
		fmt.Fprintf(&out, "%s %s\n", r.Name, r.Version)
	}
	failed := 0
	for _, c := range r.Checks {
		if len(c.Problems) == 0 {
			fmt.Fprintf(&out, "ok    %s\n", c.Name)
			continue
		}
		failed++
		fmt.Fprintf(&out, "FAIL  %s\n", c.Name)
		for _, p := range c.Problems {
			fmt.Fprintf(&out, "      %s\n        fix: %s\n", p.What, p.Fix)
		}
	}
	fmt.Fprintf(&out, "%d checks, %d failed\n", len(r.Checks), failed)
	_, err := io.WriteString(w, out.String())
	return err
}

// maxProblems bounds what one check tells; the rest is usually the same thing again.
const maxProblems = 8

// findings collects the problems of one check, each once.
type findings struct {
	check  *Check
	redact func(string) string
	seen   map[Problem]bool
	// late: a call missed its deadline, and more of them would only take time.
	late bool
}

func (f *findings) add(fix, format string, args ...any) {
	p := Problem{What: f.redact(fmt.Sprintf(format, args...)), Fix: fix}
	if f.seen[p] || len(f.check.Problems) == maxProblems {
		return
	}
	f.seen[p] = true
	f.check.Problems = append(f.check.Problems, p)
}
