package codex

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// What a figure may be, whatever the headers and the body say.
func FuzzAnswers(f *testing.F) {
	f.Add(429, "100", "300", "1796007200", "codex_fox", "GPT-Fox", "30", []byte(`{"error":{"type":"usage_limit_reached","resets_in_seconds":-5}}`))
	f.Add(200, "NaN", "0", "1e9", "", "", "soon", []byte(`{"rateLimits":{"primary":{"usedPercent":true,"windowDurationMins":9223372036854775808}}}`))
	f.Fuzz(func(t *testing.T, status int, used, minutes, reset, active, name, pause string, body []byte) {
		header := http.Header{}
		for prefix, value := range map[string]string{"used-percent": used, "window-minutes": minutes, "reset-at": reset, "reset-after-seconds": reset} {
			header.Set("x-codex-primary-"+prefix, value)
			header.Set("x-codex-fox-primary-"+prefix, value)
		}
		header.Set("x-codex-active-limit", active)
		header.Set("x-codex-fox-limit-name", name)
		header.Set("Retry-After", pause)
		observed := adaptertest.Unix(1796000000)
		v, err := New().Classify(t.Context(), sdk.Account{}, sdk.Response{Status: status, Header: header, Body: body, ObservedAt: observed})
		if err != nil || v.Outcome == 0 || v.Scope == 0 {
			t.Fatalf("verdict %+v, %v", v, err)
		}
		if !v.ClearsAt.IsZero() && !v.ClearsAt.After(observed) || v.RetryAfter < 0 {
			t.Errorf("clears at %v, pause %v", v.ClearsAt, v.RetryAfter)
		}
		windows, err := New().Observe(t.Context(), sdk.Account{}, sdk.Observation{Status: status, Header: header, ObservedAt: observed,
			Events: []sdk.Event{{Type: eventRateLimits, Data: body}}})
		if err != nil {
			t.Fatal(err)
		}
		var limits rateLimits
		if json.Unmarshal(body, &limits) == nil {
			windows = append(windows, limits.windows(observed)...)
		}
		for _, w := range append(windows, v.Windows...) {
			if w.UsedPercent != nil && !(*w.UsedPercent >= 0 && *w.UsedPercent <= 100) {
				t.Errorf("%s: %v %%", w.ID, *w.UsedPercent)
			}
			if w.Kind == sdk.WindowModel && len(w.Models) == 0 || w.ID == "" || w.Length < 0 {
				t.Errorf("window %+v is nobody's", w)
			}
		}
	})
}
