package codex

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

type judged = adaptertest.Verdict

var (
	passed     = judged{Outcome: sdk.OutcomeClientError, Scope: sdk.ScopeRequest}
	overloaded = judged{Outcome: sdk.OutcomeOverloaded, Scope: sdk.ScopeProvider}
	unsigned   = judged{Outcome: sdk.OutcomeAuthFailed, Scope: sdk.ScopeAccount}
	noAccount  = judged{Outcome: sdk.OutcomeNotEntitled, Scope: sdk.ScopeAccount}
	noModel    = judged{Outcome: sdk.OutcomeNotEntitled, Scope: sdk.ScopeModel}
	everywhere = judged{Outcome: sdk.OutcomeThrottled, Scope: sdk.ScopeRequest}
	lost       = judged{Outcome: sdk.OutcomeContinuityLost, Scope: sdk.ScopeRequest}
)

func check(t *testing.T, resp sdk.Response, want judged) sdk.Verdict {
	t.Helper()
	return adaptertest.Classify(t, New(), resp, want)
}

func TestClassifyUpstreamAnswers(t *testing.T) {
	const base = 1796000000
	want := map[string]judged{
		"codex-429-usage_limit-no-reset":        adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"codex-429-usage_limit-with-headers":    adaptertest.Exhausted(sdk.ScopeAccount, "weekly", base+3600),
		"codex-429-usage_not_included":          noAccount,
		"codex-429-rate_limit_exceeded":         adaptertest.Throttled(11054 * time.Millisecond),
		"codex-429-model-capacity":              overloaded,
		"codex-503-overloaded":                  overloaded,
		"codex-503-slow_down":                   overloaded,
		"codex-401-token_invalidated":           unsigned,
		"codex-402-workspace":                   noAccount,
		"codex-403-cloudflare":                  overloaded,
		"codex-400-model-unsupported":           noModel,
		"codex-400-model-unsupported-detail":    noModel,
		"codex-400-previous_response_not_found": lost,
		"codex-400-encrypted_content":           lost,
		"codex-520-origin":                      overloaded,
		"codex-sse-shed-early":                  overloaded,
		"codex-sse-shed-mid":                    overloaded,
		"codex-sse-usage-limit-early":           adaptertest.Exhausted(sdk.ScopeAccount, "", base+3600),
		"codex-sse-usage-limit-status_details":  adaptertest.Exhausted(sdk.ScopeAccount, "", base+1800),
		"codex-sse-rate-limit-delay":            adaptertest.Throttled(11054 * time.Millisecond),
		"codex-sse-rate-limit-delay-28ms":       adaptertest.Throttled(28 * time.Millisecond),
		"codex-sse-rate-limit-delay-35seconds":  adaptertest.Throttled(35 * time.Second),
		"codex-sse-flat-error":                  adaptertest.Throttled(14555 * time.Second),
		"codex-sse-context-length":              passed,
		"codex-ws-handshake-401":                unsigned,
		"codex-ws-handshake-429":                adaptertest.Exhausted(sdk.ScopeAccount, "", base+129600),
	}
	adaptertest.ClassifyAll(t, New(), adaptertest.ReadExchanges(t, "testdata/upstream.json"), evidence, want)
}

// The answers that the official client was shown, and what they say.
func TestClassifyAnswersTheClientReactsTo(t *testing.T) {
	want := map[string]judged{
		"b02_429_usage_limit":                adaptertest.Exhausted(sdk.ScopeAccount, "5h", 1796007200),
		"b02b_429_usage_limit_once":          adaptertest.Exhausted(sdk.ScopeAccount, "5h", 1796007200),
		"b03_429_rate_limit":                 adaptertest.Throttled(2 * time.Second),
		"b03b_429_rate_limit_once":           adaptertest.Throttled(1200 * time.Millisecond),
		"b03c_429_usage_not_included":        noAccount,
		"b03e_429_empty":                     everywhere,
		"b04_401":                            unsigned,
		"b04b_401_once":                      unsigned,
		"b05_403":                            noModel,
		"b06_400":                            passed,
		"b06b_400_model":                     noModel,
		"b07_500":                            overloaded,
		"b07b_500_once":                      overloaded,
		"b08_503_overloaded":                 overloaded,
		"b08b_503_plain":                     overloaded,
		"b08c_502":                           overloaded,
		"b08d_504":                           overloaded,
		"b08e_404":                           passed,
		"b08f_413":                           passed,
		"b08i_429_then_503noria":             overloaded,
		"b09_failed_context_length_exceeded": passed,
		"b09_failed_insufficient_quota":      noAccount,
		"b09_failed_invalid_prompt":          passed,
		"b09_failed_rate_limit_exceeded":     adaptertest.Throttled(1500 * time.Millisecond),
		"b09_failed_server_error":            overloaded,
		"b09_failed_server_is_overloaded":    overloaded,
		"b09_failed_usage_limit_reached":     adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"b09_failed_usage_not_included":      noAccount,
		"b14_error_event_429":                adaptertest.Exhausted(sdk.ScopeAccount, "", 1796012784),
		"b18_503_once":                       overloaded,
		"g5_429_retry_after_30":              adaptertest.Throttled(30 * time.Second),
		"g5c_503_retry_after_2_once":         overloaded,
		"g5d_503_retry_after_2":              overloaded,
		"g7_usage_resets_only_seconds":       adaptertest.Exhausted(sdk.ScopeAccount, "", 1796000120),
		"g7c_usage_limit_named":              adaptertest.Exhausted(sdk.ScopeModel, "codex_fox:5h", 1796007200),
		"g7d_usage_promo":                    adaptertest.Exhausted(sdk.ScopeAccount, "", 1796007200),
		"g8_400_custom":                      passed,
		"g8b_400_text":                       passed,
	}
	adaptertest.ClassifyAll(t, New(), adaptertest.ReadAnswers(t, "testdata/responses/*.http"), evidence, want)
}

func TestClassifyHostileAnswers(t *testing.T) {
	want := map[string]judged{
		"u05-429-codex": adaptertest.Exhausted(sdk.ScopeAccount, "5h", 1796014800), "u06-429-codex-lies": adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"u08-401-html": unsigned, "u09-403-challenge": overloaded,
		"u03-429-sec": adaptertest.Throttled(30 * time.Second), "u03-429-neg": adaptertest.Throttled(0), "u03-429-huge": adaptertest.Throttled(0),
	}
	for id, expected := range want {
		t.Run(id, func(t *testing.T) {
			check(t, evidence(adaptertest.ReadAnswer(t, filepath.Join("testdata/hostile", id+".http"))), expected)
		})
	}
}

func TestEveryWindowSpentInARejectionBlocksUntilTheLastOneClears(t *testing.T) {
	e := adaptertest.Exchange{Status: 429, ObservedAt: 1796000000, Body: `{"error":{"type":"usage_limit_reached","resets_at":1796007200}}`,
		Headers: map[string]string{
			"x-codex-primary-used-percent": "100", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": "1796007200",
			"x-codex-secondary-used-percent": "100", "x-codex-secondary-window-minutes": "10080", "x-codex-secondary-reset-at": "1796300000",
		}}
	v := check(t, evidence(e), adaptertest.Exhausted(sdk.ScopeAccount, "weekly", 1796300000))
	for _, w := range v.Windows {
		if w.State != sdk.StateExhausted || w.Source != sdk.SourceRejection {
			t.Errorf("window %s is %v by %v", w.ID, w.State, w.Source)
		}
	}
}

func TestANamedLimitTouchesNoWindowOfTheAccount(t *testing.T) {
	e := adaptertest.ReadAnswer(t, "testdata/responses/g7c_usage_limit_named.http")
	e.Headers["X-Codex-Primary-Used-Percent"] = "100"
	e.Headers["X-Codex-Primary-Window-Minutes"] = "300"
	v, err := New().Classify(t.Context(), sdk.Account{}, evidence(e))
	if err != nil || v.Scope != sdk.ScopeModel {
		t.Fatalf("verdict %+v, %v", v, err)
	}
	for _, w := range v.Windows {
		if len(w.Models) == 0 || w.Kind != sdk.WindowModel {
			t.Errorf("window %+v is the account's", w)
		}
	}
}

func TestAnAbsurdResetLeavesTheRejectionWithoutATime(t *testing.T) {
	for name, fields := range map[string]string{
		"negative": `"resets_in_seconds":-5`, "over": `"resets_at":1795990000`, "milliseconds": `"resets_at":1796007200000`,
		"a text": `"resets_at":"1796007200"`, "bogus": `"resets_at":15023672358`, "a fraction": `"resets_in_seconds":1.5`, "null": `"resets_at":null`,
	} {
		t.Run(name, func(t *testing.T) {
			resp := sdk.Response{Status: 200, ObservedAt: adaptertest.Unix(1796000000),
				Event: &sdk.Event{Type: "error", Data: []byte(`{"type":"error","error":{"type":"usage_limit_reached",` + fields + `}}`)}}
			check(t, resp, adaptertest.Exhausted(sdk.ScopeAccount, "", 0))
		})
	}
}

func TestBodiesThatAreNoErrorsAreUnknown(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "no JSON": "<html>", "an array": "[]", "a text": `"error"`, "null": "null",
		"a type of another kind": `{"error":{"type":7,"code":[]}}`, "an unknown code": `{"error":{"code":"made_up"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			check(t, sdk.Response{Status: 200, Event: &sdk.Event{Type: "response.failed", Data: []byte(data)}},
				judged{Outcome: sdk.OutcomeUnknownError, Scope: sdk.ScopeRequest})
		})
	}
}

func TestObserveUpstreamAnswers(t *testing.T) {
	want := map[string]map[string]seen{
		"codex-200-headers": {"weekly": {50, 1787801347, sdk.StateObserved}},
		"codex-200-headers-spark": {
			"codex_bengalfox:5h": {22, 0, sdk.StateObserved}, "codex_bengalfox:weekly": {11, 0, sdk.StateObserved},
		},
		"codex-sse-rate_limits-then-ok":      {"5h": {33, 1700000300, sdk.StateObserved}, "weekly": {44, 1700604800, sdk.StateObserved}},
		"codex-sse-rate_limits-other-bucket": {},
		"codex-sse-rate_limits-allowed-only": {},
	}
	exchanges := adaptertest.ReadExchanges(t, "testdata/upstream.json")
	for id, expected := range want {
		t.Run(id, func(t *testing.T) {
			if got := observe(t, exchanges[id].Observation(stream().Telemetry)); !maps.Equal(got, expected) {
				t.Errorf("windows = %v, want %v", got, expected)
			}
		})
	}
}
