package events

import (
	"io"
	"regexp"
	"strings"
	"sync"
)

// Redacted stands where something was taken out.
const Redacted = "[redacted]"

// minSecret is the length from which a word is worth protecting; shorter ones would eat ordinary text.
const minSecret = 8

// What credentials look like in text.
const (
	// A field or header by its name, plain or in JSON, even in JSON that is a string of JSON.
	fieldShape = `(?i)((?:authorization|cookie|x-api-key|x-noria-key|api[_-]?key|(?:access|refresh|id)_?token|client_secret|password)` +
		`\\?["']?\s*[:=]\s*\\?["']?)(?:(?:bearer|basic)\s+)?[^\s"'\\,;}&\]\[]+`
	// A key with a vendor's prefix, or a JSON web token.
	keyShape = `\b(?:sk|rk|pk|sess|oauth|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{8,}` +
		`|\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`
	bearerShape = `(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`
	// The client key may be the first element of a path.
	pathShape = `(/k/)[^/\s"'?#]+`
)

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
			{regexp.MustCompile(keyShape), Redacted},
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
	pairs := make([]string, 0, 2*len(r.known))
	for known := range r.known {
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
