package events

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Redacted stands where something was taken out.
const Redacted = "[redacted]"

// minSecret is the length from which a word is worth protecting; shorter ones would eat ordinary text.
const minSecret = 8

// keyPrefixes are what vendors' keys begin with, before a dash or an underscore.
func keyPrefixes() []string {
	return []string{"sk", "rk", "pk", "sess", "oauth", "ghp", "gho", "ghu", "ghs", "github_pat", "xoxa", "xoxb", "xoxp"}
}

// tokenPrefix is what a JSON web token begins with: base64 of a brace and a quotation mark.
const tokenPrefix = "eyJ"

// What else credentials look like in text.
const (
	// A field or header by its name, plain or in JSON, even in JSON that is a string of JSON; the whole list where it has
	// several values, as in a header that Go printed.
	fieldShape = `(?i)((?:authorization|cookie|x-api-key|x-noria-key|api[_-]?key|(?:access|refresh|id)_?token|client_secret|password)` +
		`\\?["']?\s*[:=]\s*\\?["']?)(?:\[[^\]\n]*\]?|(?:(?:bearer|basic)\s+)?[^\s"'\\,;}&\]\[]+)`
	bearerShape = `(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`
	// The client key may be the first element of a path.
	pathShape = `(/k/)[^/\s"'?#]+`
)

// keyShape is a vendor's key or a JSON web token.
func keyShape() string {
	return fmt.Sprintf(`\b(?:%s)[-_][A-Za-z0-9_-]{%d,}|\b%s[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`,
		strings.Join(keyPrefixes(), "|"), minSecret, tokenPrefix)
}

// secretShaped tells keys and web tokens by how they begin, at the start of any word of s.
func secretShaped(s string) bool {
	for at := range len(s) {
		if (at == 0 || !isAlphanumeric(s[at-1])) && (strings.HasPrefix(s[at:], tokenPrefix) || keyShaped(s[at:])) {
			return true
		}
	}
	return false
}

func keyShaped(s string) bool {
	for _, prefix := range keyPrefixes() {
		rest, found := strings.CutPrefix(s, prefix)
		if found && len(rest) > minSecret && (rest[0] == '-' || rest[0] == '_') {
			return true
		}
	}
	return false
}

// Redactor takes credentials out of text: those it was told of, and whatever has the shape of one. It is safe for
// concurrent use.
type Redactor struct {
	shapes []shape

	mu sync.RWMutex // guards below
	// known counts who protects each secret.
	known    map[string]int
	replacer *strings.Replacer
}

type shape struct {
	pattern *regexp.Regexp
	with    string
}

// NewRedactor returns a redactor that knows shapes only.
func NewRedactor() *Redactor {
	return &Redactor{
		known:    map[string]int{},
		replacer: strings.NewReplacer(),
		shapes: []shape{
			{regexp.MustCompile(fieldShape), "${1}" + Redacted},
			{regexp.MustCompile(keyShape()), Redacted},
			{regexp.MustCompile(bearerShape), "${1}" + Redacted},
			{regexp.MustCompile(pathShape), "${1}" + Redacted},
		},
	}
}

// Protect makes the redactor take out the exact secret until release is called. Secrets of fewer than eight bytes are
// not protected.
func (r *Redactor) Protect(secret string) (release func()) {
	if len(secret) < minSecret {
		return func() {}
	}
	r.count(secret, 1)
	var once sync.Once
	return func() { once.Do(func() { r.count(secret, -1) }) }
}

func (r *Redactor) count(secret string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[secret] += by; r.known[secret] == 0 {
		delete(r.known, secret)
	}
	// Of secrets that begin alike the replacer takes the first: the longest, or its end would stay.
	longestFirst := slices.SortedFunc(maps.Keys(r.known), func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(longestFirst))
	for _, known := range longestFirst {
		pairs = append(pairs, known, Redacted)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// Text returns s without credentials.
func (r *Redactor) Text(s string) string {
	r.mu.RLock()
	replacer := r.replacer
	r.mu.RUnlock()
	s = replacer.Replace(s)
	for _, shape := range r.shapes {
		s = shape.pattern.ReplaceAllString(s, shape.with)
	}
	return s
}

// Writer returns a writer to w that takes credentials out. Each Write must hold whole lines, as a logger's do: a
// credential that is split over two writes is not found.
func (r *Redactor) Writer(w io.Writer) io.Writer { return redactingWriter{r, w} }

type redactingWriter struct {
	redactor *Redactor
	to       io.Writer
}

// Write reports len(p) on success although more or fewer bytes may have been written.
func (w redactingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.redactor.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
