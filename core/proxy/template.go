package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of an answer that an adapter shaped.
const (
	maxAnswerHeaders = 64
	maxAnswerHeader  = 4 << 10
	maxAnswerBody    = 64 << 10
)

// template is an answer of our own in the client's shape, with placeholders.
type template struct {
	status          int
	headers         []*providerv1.Header
	body            []byte
	hasPlaceholders bool
}

// placeholderValues are what the placeholders stand for.
type placeholderValues struct {
	sentence string
	// resetsAt is zero when unknown.
	resetsAt time.Time
	now      time.Time
	request  string
}

// fallbacks are the answers for when the adapter is not asked. Every field is set.
type fallbacks struct {
	wrongKey, unknownPath, unavailableUntil, unavailable, adapterAway *template
}

// plain is the answer for a client whose shape is not known: both JSON shapes in one, and the header that makes a
// client of either kind stop.
func plain(status int) *template {
	return &template{
		status: status, hasPlaceholders: true,
		headers: []*providerv1.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Should-Retry", Value: "false"}},
		body:    []byte(`{"type":"error","error":{"type":"noria_error","message":"{{sentence}}"}}`),
	}
}

// compileFallbacks takes the plain answer for what an adapter did not declare.
func compileFallbacks(f *providerv1.FallbackAnswers) (out fallbacks, err error) {
	for _, one := range []struct {
		name   string
		answer *providerv1.Answer
		status int
		into   **template
	}{
		{"wrong_key", f.GetWrongKey(), http.StatusUnauthorized, &out.wrongKey},
		{"unknown_path", f.GetUnknownPath(), http.StatusNotFound, &out.unknownPath},
		{"unavailable_until", f.GetUnavailableUntil(), http.StatusServiceUnavailable, &out.unavailableUntil},
		{"unavailable", f.GetUnavailable(), http.StatusServiceUnavailable, &out.unavailable},
		{"adapter_away", f.GetAdapterAway(), http.StatusServiceUnavailable, &out.adapterAway},
	} {
		*one.into = plain(one.status)
		if one.answer.GetStatus() == 0 {
			continue
		}
		if *one.into, err = compileTemplate(one.answer); err != nil {
			return out, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return out, nil
}

// compileTemplate checks an answer: of a final status, bounded, and without headers that belong to the connection.
func compileTemplate(a *providerv1.Answer) (*template, error) {
	status := int(a.GetStatus())
	switch {
	case status < 200 || status > 599:
		return nil, errors.New("status: must be 200 to 599")
	case len(a.GetHeaders()) > maxAnswerHeaders:
		return nil, fmt.Errorf("headers: more than %d", maxAnswerHeaders)
	case len(a.GetBody()) > maxAnswerBody:
		return nil, fmt.Errorf("body: more than %d bytes", maxAnswerBody)
	}
	hasPlaceholders := bytes.Contains(a.GetBody(), []byte("{{"))
	for i, h := range a.GetHeaders() {
		if !httpguts.ValidHeaderFieldName(h.GetName()) || !httpguts.ValidHeaderFieldValue(h.GetValue()) || len(h.GetValue()) > maxAnswerHeader {
			return nil, fmt.Errorf("headers[%d]: not a header", i)
		}
		if name := canonicalHeader(h.GetName()); hopByHop[name] || name == "Content-Length" || name == "Set-Cookie" {
			return nil, fmt.Errorf("headers[%d]: belongs to the connection", i)
		}
		hasPlaceholders = hasPlaceholders || strings.Contains(h.GetValue(), "{{")
	}
	return &template{status: status, headers: a.GetHeaders(), body: a.GetBody(), hasPlaceholders: hasPlaceholders}, nil
}

// render fills the placeholders.
func (t *template) render(v placeholderValues) (header http.Header, body []byte) {
	header = make(http.Header, len(t.headers)+3)
	inHeader, inBody := strings.NewReplacer(), strings.NewReplacer()
	if t.hasPlaceholders {
		inHeader, inBody = v.replacer(printableASCII(v.sentence)), v.replacer(inJSON(v.sentence))
	}
	for _, h := range t.headers {
		header.Add(h.GetName(), inHeader.Replace(h.GetValue()))
	}
	if !t.hasPlaceholders {
		return header, t.body
	}
	return header, []byte(inBody.Replace(string(t.body)))
}

func (v placeholderValues) replacer(sentence string) *strings.Replacer {
	var unix, seconds, rfc3339 string
	if !v.resetsAt.IsZero() {
		unix = strconv.FormatInt(v.resetsAt.Unix(), 10)
		seconds = strconv.FormatInt(max(int64(v.resetsAt.Sub(v.now)/time.Second), 0), 10)
		rfc3339 = v.resetsAt.UTC().Format(time.RFC3339)
	}
	return strings.NewReplacer("{{sentence}}", sentence, "{{reset_unix}}", unix, "{{reset_seconds}}", seconds,
		"{{reset_rfc3339}}", rfc3339, "{{request}}", v.request)
}

// inJSON escapes for the inside of a JSON string.
func inJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}

// printableASCII replaces what a header value must not hold.
func printableASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
