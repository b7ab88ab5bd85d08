package claude

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/noria-dev/noria/sdk"
)

// request is one request of the official client, its body cut to the fields that say who asks.
type request struct {
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Headers [][2]string     `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

func requests(t *testing.T, name string) []request {
	t.Helper()
	var list []request
	readJSON(t, "testdata/wire/"+name+".json", &list)
	return list
}

// extract applies rules as the host does: the first hit wins.
func extract(t *testing.T, r request, rules []sdk.Extractor) string {
	t.Helper()
	for _, rule := range rules {
		value := r.field(rule.BodyPointer)
		if rule.Header != "" {
			value = r.header(rule.Header)
		}
		if rule.Inner != "" {
			value = pointer([]byte(value), rule.Inner)
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

func (r request) header(name string) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

func (r request) field(path string) string {
	if path == "" {
		return ""
	}
	return pointer(r.Body, path)
}

func pointer(document []byte, path string) string {
	var value any
	if json.Unmarshal(document, &value) != nil {
		return ""
	}
	for _, key := range strings.Split(path, "/")[1:] {
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

const firstSession = "00000000-0000-4000-8000-000000000001"

func TestSessionsAreThoseOfTheClient(t *testing.T) {
	cases := map[string]string{
		"main-oauth": firstSession, "main-apikey": firstSession, "resume": firstSession, "title": firstSession,
		"count-tokens": firstSession, "quota-probe": firstSession, "subagent-nested": firstSession,
		"main-1.0.128": firstSession, "main-2.0.76": firstSession, "main-2.1.85": firstSession, "main-2.1.86": firstSession,
		"model-discovery": "", "connect-preflight": "",
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			for _, r := range requests(t, name) {
				if !strings.HasPrefix(r.Path, "/v1/messages") && want != "" {
					continue
				}
				if got := extract(t, r, identity().Session); got != want {
					t.Errorf("%s %s: session = %q, want %q", r.Method, r.Path, got, want)
				}
			}
		})
	}
}

func TestHeaderAndBodyNameOneSession(t *testing.T) {
	rules := identity().Session
	for _, r := range requests(t, "main-oauth") {
		if r.Method != http.MethodPost {
			continue
		}
		if header, body := extract(t, r, rules[:1]), extract(t, r, rules[1:]); header != body {
			t.Errorf("session in the header %q, in the body %q", header, body)
		}
	}
}

func TestSubagentsAreNamedInTheSessionOfTheirRoot(t *testing.T) {
	agents := map[string]bool{}
	for _, r := range requests(t, "subagent-nested") {
		agents[extract(t, r, identity().Subagent)] = true
	}
	if len(agents) != 4 || !agents[""] {
		t.Errorf("agents = %v, want three and the root", agents)
	}
}

func TestModelsAreMatchedWithoutTheirContextSuffix(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"claude-opus-5-5"}`:     "claude-opus-5-5",
		`{"model":"claude-opus-5-5[1m]"}`: "claude-opus-5-5",
		`{"model":"[1m]"}`:                "[1m]",
		`{}`:                              "",
	} {
		if got := extract(t, request{Body: []byte(body)}, identity().Model); got != want {
			t.Errorf("model of %s = %q, want %q", body, got, want)
		}
	}
}

func TestEveryRequestOfTheClientHasARoute(t *testing.T) {
	kinds := map[string]sdk.RouteKind{
		"main-oauth": sdk.RouteTurn, "quota-probe": sdk.RouteTurn, "title": sdk.RouteTurn, "count-tokens": sdk.RouteAux,
		"model-discovery": sdk.RouteAux, "connect-preflight": sdk.RouteLocal,
	}
	for name, want := range kinds {
		t.Run(name, func(t *testing.T) {
			found := false
			for _, r := range requests(t, name) {
				kind, ok := routeOf(r)
				if !ok {
					t.Errorf("%s %s has no route", r.Method, r.Path)
				}
				found = found || kind == want
			}
			if !found {
				t.Errorf("no request of kind %v", want)
			}
		})
	}
}

func routeOf(r request) (sdk.RouteKind, bool) {
	path, _, _ := strings.Cut(r.Path, "?")
	for _, route := range profile().Routes {
		if route.Method == r.Method && route.Path == path {
			return route.Kind, true
		}
	}
	return 0, false
}

func TestLocalRoutesNeedNothingOfAnAccount(t *testing.T) {
	for _, route := range profile().Routes {
		if (route.Kind == sdk.RouteLocal) != (route.Local != nil) {
			t.Errorf("%s %s: kind %v with a local answer %v", route.Method, route.Path, route.Kind, route.Local)
		}
	}
}
