package claude

import (
	"net/http"
	"strings"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

func requests(t *testing.T, name string) []adaptertest.Request {
	t.Helper()
	return adaptertest.ReadRequests(t, "testdata/wire/"+name+".json", "/")
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
				if got := r.Extract(identity().Session); got != want {
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
		if header, body := r.Extract(rules[:1]), r.Extract(rules[1:]); header != body {
			t.Errorf("session in the header %q, in the body %q", header, body)
		}
	}
}

func TestSubagentsAreNamedInTheSessionOfTheirRoot(t *testing.T) {
	agents := map[string]bool{}
	for _, r := range requests(t, "subagent-nested") {
		agents[r.Extract(identity().Subagent)] = true
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
		if got := (adaptertest.Request{Body: []byte(body)}).Extract(identity().Model); got != want {
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

func routeOf(r adaptertest.Request) (sdk.RouteKind, bool) {
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
