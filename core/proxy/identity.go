package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of rules and of what they find.
const (
	maxPattern      = 512
	maxPatternInput = 1024
	maxIdentity     = 128
	maxModel        = 200
	// maxDecoded bytes of a body are looked through at most.
	maxDecoded = 32 << 20
)

// Places of the lists in a profile's identity rules, and in its streaming rules.
const (
	ruleSession = iota
	ruleModel
	ruleWork

	ruleStreaming = 0
)

// extractor finds one value in a request.
type extractor struct {
	// header is canonical; empty: the value is at field.
	header  string
	pointer pointer
	// field is the place of pointer among those of the rules.
	field   int
	inner   pointer
	pattern *regexp.Regexp
}

func compileExtractor(e *providerv1.Extractor) (out extractor, err error) {
	switch source := e.GetSource().(type) {
	case *providerv1.Extractor_Header:
		names, err := headerNames("header", []string{source.Header})
		if err != nil {
			return out, err
		}
		out.header = names[0]
	case *providerv1.Extractor_BodyPointer:
		if out.pointer, err = compilePointer(source.BodyPointer); err != nil {
			return out, fmt.Errorf("body_pointer: %w", err)
		}
	default:
		return out, errors.New("must name a header or a body_pointer")
	}
	if inner := e.GetInnerPointer(); inner != "" {
		if out.inner, err = compilePointer(inner); err != nil {
			return out, fmt.Errorf("inner_pointer: %w", err)
		}
	}
	if pattern := e.GetPattern(); pattern != "" {
		if len(pattern) > maxPattern {
			return out, fmt.Errorf("pattern: more than %d bytes", maxPattern)
		}
		if out.pattern, err = regexp.Compile(pattern); err != nil {
			return out, errors.New("pattern: not a regular expression of RE2")
		}
		if out.pattern.NumSubexp() != 1 {
			return out, errors.New("pattern: must have exactly one group")
		}
	}
	return out, nil
}

// pick makes the rule's value out of what was found; empty is no hit.
func (e *extractor) pick(value string) string {
	if e.inner != nil {
		inner := scanBytes([]byte(value), e.inner)[0]
		if !inner.ok {
			return ""
		}
		value = inner.value
	}
	if e.pattern == nil {
		return value
	}
	groups := e.pattern.FindStringSubmatch(value[:min(len(value), maxPatternInput)])
	if groups == nil {
		return ""
	}
	return groups[1]
}

// rules are ordered lists of extractors with the pointers that they need, each once.
type rules struct {
	lists    [][]extractor
	pointers []pointer
}

func newRules(lists ...[]extractor) rules {
	r := rules{lists: lists}
	for _, list := range lists {
		for i := range list {
			if e := &list[i]; e.header == "" {
				e.field = r.place(e.pointer)
			}
		}
	}
	return r
}

// place of a pointer among those of the rules. Three lists of maxExtractors stay below maxPointers.
func (r *rules) place(p pointer) int {
	for i, known := range r.pointers {
		if slices.Equal(known, p) {
			return i
		}
	}
	r.pointers = append(r.pointers, p)
	return len(r.pointers) - 1
}

// evaluate a list. settled is false while a field that comes before any hit is still open.
func (r *rules) evaluate(list []extractor, h http.Header, fields []field) (value string, settled bool) {
	for i := range list {
		e := &list[i]
		var raw string
		switch {
		case e.header != "":
			raw = first(h[e.header])
		case fields == nil || !fields[e.field].ok:
			return "", false
		default:
			raw = fields[e.field].value
		}
		if raw == "" {
			continue
		}
		if value = e.pick(raw); value != "" {
			return value, true
		}
	}
	return "", true
}

// extract finds one value per list, from headers first. The body is opened only when those are not enough, and read no
// further than needed.
func (r *rules) extract(h http.Header, body func(yield func([]byte) bool)) []string {
	values := make([]string, len(r.lists))
	open := false
	for i, list := range r.lists {
		var settled bool
		values[i], settled = r.evaluate(list, h, nil)
		open = open || !settled
	}
	if !open {
		return values
	}
	scan := newFieldScan(r.pointers, nil)
	scan.enough = func() bool {
		for _, list := range r.lists {
			if _, settled := r.evaluate(list, h, scan.values); !settled {
				return false
			}
		}
		return true
	}
	scan.all(body)
	for i := range scan.values {
		// What was not found is absent: the rules behind it have their turn.
		scan.values[i].ok = true
	}
	for i, list := range r.lists {
		values[i], _ = r.evaluate(list, h, scan.values)
	}
	return values
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// identity is what a request says of itself.
type identity struct {
	// session is the key, provider/identity; empty: none.
	session string
	model   string
	work    string
}

// identify applies the profile's rules.
func (p *Profile) identify(h http.Header, body func(yield func([]byte) bool)) identity {
	values := p.identity.extract(h, body)
	who := identity{model: values[ruleModel], work: values[ruleWork]}
	if id := values[ruleSession]; id != "" {
		who.session = p.provider + "/" + sessionIdentity(id)
	}
	if len(who.model) > maxModel || !printable(who.model) {
		who.model = ""
	}
	return who
}

// sessionIdentity is the client's own word when it is short and plain, else its digest.
func sessionIdentity(id string) string {
	if len(id) <= maxIdentity && printable(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// printable reports whether s is of ASCII characters that show, without blanks.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// sessionHash is what logs and events may know of a session.
func sessionHash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// readPieces reads r piece by piece, at most maxDecoded bytes. What cannot be read ends it.
func readPieces(r io.Reader, buffer []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for left := maxDecoded; left > 0; {
			n, err := r.Read(buffer[:min(len(buffer), left)])
			left -= n
			if n > 0 && !yield(buffer[:n]) || err != nil {
				return
			}
		}
	}
}
