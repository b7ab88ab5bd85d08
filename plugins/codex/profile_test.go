package codex

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// requests reads the requests of a case that went to the base URL.
func requests(t *testing.T, name string) []adaptertest.Request {
	t.Helper()
	return adaptertest.ReadRequests(t, "testdata/requests/"+name+".json", "/backend-api/codex/")
}

func sessions(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, r := range requests(t, name) {
		if r.Method == http.MethodPost {
			found = append(found, r.Extract(identity().Session))
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
			if got := r.Extract([]sdk.Extractor{rule}); got != root {
				t.Errorf("session by %+v = %q", rule, got)
			}
		}
	}
}

func TestTheTitleOfAThreadIsPlacedAndBindsNothing(t *testing.T) {
	var placed []bool
	for _, r := range requests(t, "tui_turn_and_title") {
		for _, rule := range identity().Work {
			placed = append(placed, slices.Contains(identity().PlacedWork, r.Extract([]sdk.Extractor{rule})))
		}
	}
	if !slices.Equal(placed, []bool{false, false, true, true}) {
		t.Errorf("placed, by header and body of turn and title = %v", placed)
	}
}

func TestSubagentsAreTold(t *testing.T) {
	var agents, parents []string
	for _, r := range requests(t, "identity_subagent") {
		agents = append(agents, r.Extract(identity().Subagent))
		parents = append(parents, r.Extract(identity().Parent))
	}
	if !slices.Equal(agents, []string{"", "", "collab_spawn", ""}) || !slices.Equal(parents, []string{"", "", root, ""}) {
		t.Errorf("agents = %v, parents = %v", agents, parents)
	}
}

func TestModelAndStreamingAreRead(t *testing.T) {
	for _, r := range requests(t, "identity_first_then_resume") {
		if model, streaming := r.Extract(identity().Model), r.Extract(identity().Streaming); model != "gpt-6.2-sol" || streaming != "true" {
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
			if r.Header(name) == "" || !slices.Contains(headerPolicy().Credentials, name) {
				t.Errorf("%s is sent and not held back", name)
			}
		}
	}
}
