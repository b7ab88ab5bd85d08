package config

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/noria-dev/noria/core/internal/printable"
)

// maxDiagnostics is more than anybody reads at once.
const maxDiagnostics = 100

// diagnostics are all that were found so far.
func (f *File) diagnostics() Diagnostics { return f.render(f.found) }

// render turns what was found into plain values with their source, in the order of the file.
func (f *File) render(found hcl.Diagnostics) Diagnostics {
	ordered := slices.Clone(found)
	slices.SortStableFunc(ordered, func(a, b *hcl.Diagnostic) int { return cmp.Compare(offset(a), offset(b)) })
	var all Diagnostics
	for _, d := range shortened(ordered) {
		rendered := Diagnostic{
			Severity: SeverityError, Summary: printable.Text(d.Summary), Detail: printable.Text(strings.TrimSpace(d.Detail)),
		}
		if d.Severity == hcl.DiagWarning {
			rendered.Severity = SeverityWarning
		}
		if d.Subject != nil {
			rendered.Range, rendered.Snippet = f.place(*d.Subject)
		}
		all = append(all, rendered)
	}
	return all
}

// shortened has one for all that are more than anybody reads.
func shortened(ordered hcl.Diagnostics) hcl.Diagnostics {
	more := len(ordered) - maxDiagnostics
	if more <= 0 {
		return ordered
	}
	return append(ordered[:maxDiagnostics], &hcl.Diagnostic{
		Summary: fmt.Sprintf("%d more from here on", more), Detail: "Fix what is above first.", Subject: ordered[maxDiagnostics].Subject,
	})
}

func offset(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return -1
	}
	return d.Subject.Start.Byte
}

// place gives a range its snippet.
func (f *File) place(at hcl.Range) (*Range, *Snippet) {
	r := &Range{
		File: printable.Text(at.Filename), StartLine: at.Start.Line, StartColumn: at.Start.Column,
		EndLine: at.End.Line, EndColumn: at.End.Column,
	}
	if at.Start.Byte > len(f.source) {
		return r, nil
	}
	begin := bytes.LastIndexByte(f.source[:at.Start.Byte], '\n') + 1
	end := len(f.source)
	if n := bytes.IndexByte(f.source[begin:], '\n'); n >= 0 {
		end = begin + n
	}
	line := f.line(begin, end)
	s := &Snippet{Context: f.context(at), Line: line.text}
	s.Start = line.at(at.Start.Byte)
	s.End = max(line.at(min(at.End.Byte, end)), s.Start)
	return r, s
}

// context names the blocks around a place, without the one whose header it is.
func (f *File) context(at hcl.Range) string {
	var names []string
	body := f.body
	for {
		i := slices.IndexFunc(body.Blocks, func(b *hclsyntax.Block) bool {
			return b.Body.SrcRange.Start.Byte < at.Start.Byte && at.Start.Byte < b.Body.SrcRange.End.Byte
		})
		if i < 0 {
			return strings.Join(names, ", ")
		}
		name := body.Blocks[i].Type
		for _, label := range body.Blocks[i].Labels {
			name += ` "` + printable.Bounded(label, 64) + `"`
		}
		names = append(names, name)
		body = body.Blocks[i].Body
	}
}

// shownLine is a line of the source, with what may be a secret masked and what is not printable escaped.
type shownLine struct {
	text    string
	offsets []int // in text, for every byte of the source line and its end
	begin   int
}

func (l shownLine) at(source int) int {
	return l.offsets[min(max(source-l.begin, 0), len(l.offsets)-1)]
}

func (f *File) line(begin, end int) shownLine {
	raw := f.source[begin:end]
	masked := f.masked(begin, raw)
	l := shownLine{begin: begin, offsets: make([]int, 0, len(raw)+1)}
	var b strings.Builder
	for i := 0; i < len(raw); {
		if n := masked[i]; n > 0 {
			for range n {
				l.offsets = append(l.offsets, b.Len())
			}
			b.WriteString(hidden)
			i += n
			continue
		}
		_, size := utf8.DecodeRune(raw[i:])
		for range size {
			l.offsets = append(l.offsets, b.Len())
		}
		if raw[i] == '\t' {
			b.WriteString("    ")
		} else if raw[i] != '\r' {
			b.WriteString(printable.Text(string(raw[i : i+size])))
		}
		i += size
	}
	l.offsets = append(l.offsets, b.Len())
	l.text = b.String()
	return l
}

// Words that could be a key or a token, and long words that are something else.
var (
	longWord  = regexp.MustCompile(`[A-Za-z0-9_+=-]{24,}`)
	digits    = regexp.MustCompile(`[0-9].*[0-9]`)
	variable  = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)
	digestSet = regexp.MustCompile(`^\s*sha256\s*=`)
)

// masked tells where in a line masks begin and how many bytes of the source each hides.
func (f *File) masked(begin int, raw []byte) map[int]int {
	masks := map[int]int{}
	for _, m := range longWord.FindAllIndex(raw, -1) {
		word := raw[m[0]:m[1]]
		if digits.Match(word) && !variable.Match(word) && !digestSet.Match(raw) {
			masks[m[0]] = len(word)
		}
	}
	f.visitValues(f.body, false, func(value hcl.Range) {
		from, to := max(value.Start.Byte-begin, 0), min(value.End.Byte-begin, len(raw))
		if from >= to {
			return
		}
		for at := range masks {
			if at >= from && at < to {
				delete(masks, at)
			}
		}
		masks[from] = to - from
	})
	return masks
}

// visitValues calls hide with every value in a provider's block that is not known to be harmless.
func (f *File) visitValues(body *hclsyntax.Body, plugins bool, hide func(hcl.Range)) {
	for _, a := range body.Attributes {
		if plugins && !f.harmless[a.NameRange.Start.Byte] && !isHostAttribute(a.Name) {
			hide(a.Expr.Range())
		}
	}
	for _, b := range body.Blocks {
		f.visitValues(b.Body, plugins || b.Type == "provider", hide)
	}
}

// isHostAttribute knows the attributes that the host decodes in the blocks of providers; none of them holds a secret.
func isHostAttribute(name string) bool {
	switch name {
	case "plugin", "enabled", "models", "overage", "env", "file", "command":
		return true
	}
	return false
}

// show remembers that an attribute's value may be shown, because its schema does not call it sensitive.
func (f *File) show(body hcl.Body, name string) {
	if a, ok := syntaxBody(body).Attributes[name]; ok {
		f.harmless[a.NameRange.Start.Byte] = true
	}
}

func syntaxBody(body hcl.Body) *hclsyntax.Body {
	if syntax, ok := body.(*hclsyntax.Body); ok {
		return syntax
	}
	return &hclsyntax.Body{}
}
