package codex

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
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

// requests reads the requests of a case that went to the base URL.
func requests(t *testing.T, name string) []request {
	t.Helper()
	var list []request
	readJSON(t, "testdata/requests/"+name+".json", &list)
	return slices.DeleteFunc(list, func(r request) bool { return !strings.HasPrefix(r.Path, "/backend-api/codex/") })
}

// extract applies rules as the host does: the first hit wins.
func extract(t *testing.T, r request, rules []sdk.Extractor) string {
	t.Helper()
	for _, rule := range rules {
		value := r.header(rule.Header)
		if rule.BodyPointer != "" {
			value = pointer(r.Body, rule.BodyPointer)
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

func sessions(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, r := range requests(t, name) {
		if r.Method == http.MethodPost {
			found = append(found, extract(t, r, identity().Session))
		}
	}
	return found
}

const root = "00000000-0000-7000-8000-000000000001"

func TestASessionIsEqualOverResumeCompactionAndSubagents(t *testing.T) {
	for _, name := range []string{"identity_first_then_resume", "compaction_remote_v2_native", "identity_subagent"} {
		t.Run(name, func(t *testing.T) {
			found := sessions(t, name)
			if len(found) < 2 || slices.ContainsFunc(found, func(s string) bool { return s != root }) {
				t.Errorf("sessions = %v", found)
			}
		})
	}
}

func TestAForkIsASessionOfItsOwn(t *testing.T) {
	if found := sessions(t, "identity_first_then_fork"); len(found) != 2 || found[0] != root || found[1] == root || found[1] == "" {
		t.Errorf("sessions = %v", found)
	}
}

func TestEverySourceNamesTheSameSession(t *testing.T) {
	for _, r := range requests(t, "identity_first_then_resume") {
		for _, rule := range identity().Session {
			if got := extract(t, r, []sdk.Extractor{rule}); got != root {
				t.Errorf("session by %+v = %q", rule, got)
			}
		}
	}
}

func TestTheTitleOfAThreadIsPlacedAndBindsNothing(t *testing.T) {
	var placed []bool
	for _, r := range requests(t, "tui_turn_and_title") {
		for _, rule := range identity().Work {
			placed = append(placed, slices.Contains(identity().PlacedWork, extract(t, r, []sdk.Extractor{rule})))
		}
	}
	if !slices.Equal(placed, []bool{false, false, true, true}) {
		t.Errorf("placed, by header and body of turn and title = %v", placed)
	}
}

func TestSubagentsAreTold(t *testing.T) {
	var agents, parents []string
	for _, r := range requests(t, "identity_subagent") {
		agents = append(agents, extract(t, r, identity().Subagent))
		parents = append(parents, extract(t, r, identity().Parent))
	}
	if !slices.Equal(agents, []string{"", "", "collab_spawn", ""}) || !slices.Equal(parents, []string{"", "", root, ""}) {
		t.Errorf("agents = %v, parents = %v", agents, parents)
	}
}

func TestModelAndStreamingAreRead(t *testing.T) {
	for _, r := range requests(t, "identity_first_then_resume") {
		if model, streaming := extract(t, r, identity().Model), extract(t, r, identity().Streaming); model != "gpt-6.2-sol" || streaming != "true" {
			t.Errorf("model %q, streaming %q", model, streaming)
		}
	}
}

func TestEveryRequestToTheBaseURLHasARoute(t *testing.T) {
	want := map[string]sdk.RouteKind{
		"POST /responses": sdk.RouteTurn, "GET /models": sdk.RouteAux, "GET /responses": sdk.RouteLocal,
	}
	for _, name := range []string{"native_all_startup_calls", "native_models", "tui_turn_and_title"} {
		for _, r := range requests(t, name) {
			path := strings.TrimPrefix(r.Path, "/backend-api/codex")
			at := slices.IndexFunc(routes(), func(route sdk.Route) bool { return route.Method == r.Method && route.Path == path })
			if at < 0 || routes()[at].Kind != want[r.Method+" "+path] {
				t.Errorf("%s %s: route %d", r.Method, path, at)
			}
		}
	}
}

func TestAnUpgradeIsRefusedSoThatTheClientFallsBack(t *testing.T) {
	for _, route := range routes() {
		if (route.Method == http.MethodGet && route.Path == "/responses") != route.RefuseUpgrade {
			t.Errorf("%s %s: upgrade refused %v", route.Method, route.Path, route.RefuseUpgrade)
		}
	}
}

func TestWhatIsTheClientsOwnGoesNoFurther(t *testing.T) {
	for _, r := range requests(t, "native_routing_override_header") {
		for _, name := range []string{"authorization", "chatgpt-account-id", "x-openai-account-routing-override"} {
			if r.header(name) == "" || !slices.Contains(headerPolicy().Credentials, name) {
				t.Errorf("%s is sent and not held back", name)
			}
		}
	}
}
