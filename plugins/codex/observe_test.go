package codex

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// seen is what a reading says of a window.
type seen struct {
	used  float64 // -1: unknown
	reset int64   // 0: unknown
	state sdk.WindowState
}

func observe(t *testing.T, obs sdk.Observation) map[string]seen {
	t.Helper()
	windows, err := New().Observe(t.Context(), sdk.Account{}, obs)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range windows {
		if w.Source == 0 || !w.ObservedAt.Equal(obs.ObservedAt) {
			t.Errorf("%s: source %v, observed at %v", w.ID, w.Source, w.ObservedAt)
		}
	}
	return summary(windows)
}

func summary(windows []sdk.Window) map[string]seen {
	found := map[string]seen{}
	for _, w := range windows {
		s := seen{used: -1, state: w.State}
		if w.UsedPercent != nil {
			s.used = *w.UsedPercent
		}
		if !w.ResetsAt.IsZero() {
			s.reset = w.ResetsAt.Unix()
		}
		found[w.ID] = s
	}
	return found
}

func headers(pairs ...string) http.Header {
	header := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		header.Set("x-codex-"+pairs[i], pairs[i+1])
	}
	return header
}

func TestTheEventIsTheLaterWordOnAWindowOfTheHeaders(t *testing.T) {
	event := func(reached bool, used int) sdk.Event {
		return sdk.Event{Type: eventRateLimits, Data: fmt.Appendf(nil,
			`{"rate_limits":{"limit_reached":%v,"primary":{"used_percent":%d,"window_minutes":300}}}`, reached, used)}
	}
	cases := []struct {
		name    string
		headers http.Header
		event   sdk.Event
		want    seen
	}{
		{"a newer figure", headers("primary-used-percent", "40", "primary-window-minutes", "300"), event(false, 41), seen{41, 0, sdk.StateObserved}},
		{"a limit that was reached meanwhile", headers("primary-used-percent", "99", "primary-window-minutes", "300"),
			event(true, 100), seen{100, 0, sdk.StateExhausted}},
		{"a limit that the headers say was reached", headers("primary-used-percent", "100", "primary-window-minutes", "300",
			"rate-limit-reached-type", "primary"), event(false, 100), seen{100, 0, sdk.StateExhausted}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			windows, err := New().Observe(t.Context(), sdk.Account{}, sdk.Observation{Status: http.StatusOK, Header: c.headers, Events: []sdk.Event{c.event}})
			if err != nil || len(windows) != 1 {
				t.Fatalf("windows = %+v, %v", windows, err)
			}
			if got := summary(windows)["5h"]; got != c.want {
				t.Errorf("window = %v, want %v", got, c.want)
			}
		})
	}
}

func TestObserveReadsHeadersByTheirLength(t *testing.T) {
	cases := []struct {
		name   string
		header http.Header
		want   map[string]seen
	}{
		{"slots mean nothing",
			headers("primary-used-percent", "13", "primary-window-minutes", "10080", "secondary-used-percent", "42.5", "secondary-window-minutes", "300"),
			map[string]seen{"weekly": {13, 0, sdk.StateObserved}, "5h": {42.5, 0, sdk.StateObserved}}},
		{"other lengths are named by them",
			headers("primary-used-percent", "5", "primary-window-minutes", "60", "secondary-used-percent", "6", "secondary-window-minutes", "1440"),
			map[string]seen{"1h": {5, 0, sdk.StateObserved}, "1d": {6, 0, sdk.StateObserved}}},
		{"no length is no window", headers("primary-used-percent", "3"), map[string]seen{}},
		{"length 0 is no window", headers("primary-used-percent", "3", "primary-window-minutes", "0"), map[string]seen{}},
		{"a relative reset",
			headers("primary-used-percent", "3", "primary-window-minutes", "300", "primary-reset-after-seconds", "7200"),
			map[string]seen{"5h": {3, 1796007200, sdk.StateObserved}}},
		{"the absolute reset comes first",
			headers("primary-used-percent", "3", "primary-window-minutes", "300", "primary-reset-at", "1796003600", "primary-reset-after-seconds", "7200"),
			map[string]seen{"5h": {3, 1796003600, sdk.StateObserved}}},
		{"a reset beyond the window is unknown",
			headers("primary-used-percent", "3", "primary-window-minutes", "300", "primary-reset-at", "1796300000"),
			map[string]seen{"5h": {3, 0, sdk.StateObserved}}},
		{"a percentage of another unit is unknown",
			headers("primary-used-percent", "250", "primary-window-minutes", "300"), map[string]seen{"5h": {-1, 0, sdk.StateUnknown}}},
		{"a hundred that is shown exhausts nothing",
			headers("primary-used-percent", "100", "primary-window-minutes", "300", "credits-has-credits", "False"),
			map[string]seen{"5h": {100, 0, sdk.StateObserved}}},
		{"a hundred while credits pay is exhausted",
			headers("primary-used-percent", "100", "primary-window-minutes", "300", "credits-has-credits", "True"),
			map[string]seen{"5h": {100, 0, sdk.StateExhausted}}},
		{"a limit that was reached is exhausted",
			headers("primary-used-percent", "100", "primary-window-minutes", "300", "rate-limit-reached-type", "workspace_member_usage_limit_reached"),
			map[string]seen{"5h": {100, 0, sdk.StateExhausted}}},
		{"a named limit beside the account's",
			headers("active-limit", "codex", "primary-used-percent", "12", "primary-window-minutes", "300",
				"fox-primary-used-percent", "77", "fox-primary-window-minutes", "300", "fox-limit-name", "GPT-Made-Up-Fox"),
			map[string]seen{"5h": {12, 0, sdk.StateObserved}, "codex_fox:5h": {77, 0, sdk.StateObserved}}},
		{"a named limit without a name is nobody's",
			headers("active-limit", "codex_owl", "primary-used-percent", "99", "primary-window-minutes", "300"), map[string]seen{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := observe(t, sdk.Observation{Status: 200, Header: c.header, ObservedAt: adaptertest.Unix(1796000000)})
			if !maps.Equal(got, c.want) {
				t.Errorf("windows = %v, want %v", got, c.want)
			}
		})
	}
}

func TestNamedLimitsAreWindowsOfTheirModel(t *testing.T) {
	_, windows := headerLimits(headers("fox-primary-used-percent", "77", "fox-primary-window-minutes", "300", "fox-limit-name", "GPT-Made-Up-Fox"),
		adaptertest.Unix(1796000000))
	if len(windows) != 1 || windows[0].Kind != sdk.WindowModel || !slices.Equal(windows[0].Models, []string{"gpt-made-up-fox"}) {
		t.Errorf("windows = %+v", windows)
	}
}

func TestLimitsInsideAStreamAreRead(t *testing.T) {
	e := adaptertest.ReadAnswer(t, "testdata/responses/b11_rate_limits_event.http")
	e.ObservedAt = 1796005584
	want := map[string]seen{"5h": {42, 1796005684, sdk.StateObserved}, "weekly": {84, 1796006584, sdk.StateObserved}}
	if got := observe(t, e.Observation(stream().Telemetry)); !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
	data := `{"type":"codex.rate_limits","rate_limits":{"limit_reached":true,"primary":{"used_percent":100,"window_minutes":300},"secondary":{"used_percent":7,"window_minutes":10080}}}`
	got := observe(t, sdk.Observation{Events: []sdk.Event{{Type: eventRateLimits, Data: []byte(data)}, {Type: eventRateLimits, Data: []byte("{")}}})
	want = map[string]seen{"5h": {100, 0, sdk.StateExhausted}, "weekly": {7, 0, sdk.StateObserved}}
	if !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
}

func TestNamedLimitsAreBounded(t *testing.T) {
	header := http.Header{}
	for i := range 1000 {
		family := "f" + strconv.Itoa(i)
		header.Set("x-codex-"+family+"-primary-used-percent", "5")
		header.Set("x-codex-"+family+"-primary-window-minutes", "300")
		header.Set("x-codex-"+family+"-limit-name", "model-"+family)
	}
	if _, windows := headerLimits(header, adaptertest.Unix(1796000000)); len(windows) != maxFamilies {
		t.Errorf("%d windows", len(windows))
	}
}

func TestAPercentageThatIsLeftOutMakesNothingUnknown(t *testing.T) {
	got := observe(t, sdk.Observation{Header: headers("primary-window-minutes", "300", "primary-reset-at", "1796003600"), ObservedAt: adaptertest.Unix(1796000000)})
	if want := map[string]seen{"5h": {-1, 1796003600, sdk.StateNotExposed}}; !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
}
