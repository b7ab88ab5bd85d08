package adaptertest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/noria-dev/noria/sdk"
)

// Request is one recorded request of an official client, its body cut to the fields that say who asks.
type Request struct {
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Headers [][2]string     `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

// ReadRequests reads the requests of a file whose path begins so.
func ReadRequests(t *testing.T, path, prefix string) []Request {
	t.Helper()
	var all, list []Request
	ReadJSON(t, path, &all)
	for _, r := range all {
		if strings.HasPrefix(r.Path, prefix) {
			list = append(list, r)
		}
	}
	return list
}

// Extract applies rules as the host does: the first hit wins.
func (r Request) Extract(rules []sdk.Extractor) string {
	for _, rule := range rules {
		value := r.Header(rule.Header)
		if rule.BodyPointer != "" {
			value = Field(r.Body, rule.BodyPointer)
		}
		if rule.Inner != "" {
			value = Field([]byte(value), rule.Inner)
		}
		if rule.Pattern != "" && value != "" {
			match := regexp.MustCompile(rule.Pattern).FindStringSubmatch(value)
			value = ""
			if match != nil {
				value = match[1]
			}
		}
		if value != "" {
			return value
		}
	}
	return ""
}

// Header gives the first value of a header; empty: there is none.
func (r Request) Header(name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

// Field gives the text or truth value that a JSON pointer names in a document; empty: there is none.
func Field(document []byte, pointer string) string {
	var value any
	if json.Unmarshal(document, &value) != nil {
		return ""
	}
	for _, key := range strings.Split(pointer, "/")[1:] {
		object, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = object[key]
	}
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return map[bool]string{true: "true", false: "false"}[value]
	}
	return ""
}
