package claude

import (
	"net/http"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// What a figure may be, whatever the headers and the body say.
func FuzzAnswers(f *testing.F) {
	f.Add(429, "rejected", "1.0", "1796014800", "five_hour", "30", []byte(`{"error":{"type":"rate_limit_error"}}`))
	f.Add(200, "allowed", "NaN", "-1", "seven_day_opus", "soon", []byte(`[`))
	f.Fuzz(func(t *testing.T, status int, word, fraction, reset, claim, pause string, body []byte) {
		header := http.Header{}
		for name, value := range map[string]string{
			"status": word, "5h-status": word, "5h-utilization": fraction, "5h-reset": reset, "7d-utilization": fraction,
			"7d_opus-status": word, "reset": reset, "representative-claim": claim,
		} {
			header.Set(headerPrefix+name, value)
		}
		header.Set("Retry-After", pause)
		observed := adaptertest.Unix(1796000000)
		v, err := New().Classify(t.Context(), sdk.Account{}, sdk.Response{Status: status, Header: header, Body: body, ObservedAt: observed})
		if err != nil || v.Outcome == 0 || v.Scope == 0 {
			t.Fatalf("verdict %+v, %v", v, err)
		}
		if !v.ClearsAt.IsZero() && !v.ClearsAt.After(observed) || v.RetryAfter < 0 {
			t.Errorf("clears at %v, pause %v", v.ClearsAt, v.RetryAfter)
		}
		windows, err := New().Observe(t.Context(), sdk.Account{}, sdk.Observation{Status: status, Header: header, ObservedAt: observed})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range append(windows, v.Windows...) {
			if w.UsedPercent != nil && !(*w.UsedPercent >= 0 && *w.UsedPercent <= 100) {
				t.Errorf("%s: %v %%", w.ID, *w.UsedPercent)
			}
			if w.State == sdk.StateExhausted && !says(header, headerPrefix+"status", rejected) {
				t.Errorf("%s is exhausted and nothing said so", w.ID)
			}
		}
	})
}
