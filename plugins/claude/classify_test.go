package claude

import (
	"path/filepath"
	"slices"
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
	const base, week = 1796000000, 7 * 86400
	want := map[string]judged{
		"claude-429-5h-exhausted":                       adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1785518400),
		"claude-429-5h-windowed-only":                   adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1785518400),
		"claude-429-windowless":                         everywhere,
		"claude-429-7d_oi-only":                         adaptertest.Exhausted(sdk.ScopeModel, "seven_day_oi", base+120),
		"claude-429-aggregate-rejected-unknown-windows": adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"claude-429-fast-but-window":                    adaptertest.Exhausted(sdk.ScopeAccount, windowSevenDay, base+week),
		"claude-429-long-context":                       everywhere,
		"claude-429-out-of-extra-usage":                 everywhere,
		"claude-529":                                    overloaded,
		"claude-401-revoked":                            unsigned,
		"claude-403-revoked":                            unsigned,
		"claude-403-request-not-allowed":                noModel,
		"claude-400-org-disabled":                       noAccount,
		"claude-400-thinking-signature":                 lost,
		"claude-sse-error-after-ping":                   adaptertest.Throttled(0),
		"claude-sse-error-after-message_start":          overloaded,
		"claude-sse-error-midstream":                    overloaded,
	}
	adaptertest.ClassifyAll(t, New(), adaptertest.ReadExchanges(t, "testdata/upstream.json"), evidence, want)
}

// The answers that the official client was shown, and what they say.
func TestClassifyAnswersTheClientReactsTo(t *testing.T) {
	want := map[string]judged{
		"400-credit": passed, "400-other": passed, "400-toolong": passed, "402": passed, "404-model": passed, "413": passed,
		"401": unsigned, "401-apikey": unsigned, "401-revoked": unsigned,
		"403": noAccount, "403-revoked": unsigned,
		"408": overloaded, "500-retry-false": overloaded, "502-html": overloaded, "503": overloaded, "503-otherjson": overloaded,
		"503-ra": overloaded, "503-ra-false": overloaded, "503-text": overloaded, "503ra20": overloaded, "503ra60": overloaded,
		"503ra90": overloaded, "529": overloaded, "529-bearer": overloaded,
		"429-bare": everywhere, "429-retry-false": everywhere,
		"429-burst": adaptertest.Throttled(2 * time.Second), "429-burst-long": adaptertest.Throttled(2 * time.Minute),
		"429ra-ms":                      adaptertest.Throttled(4 * time.Second),
		"429-unified-5h":                adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796015223),
		"429-unified-5h-ra":             adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796015226),
		"429-unified-5h-srt":            adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796015225),
		"429u-apikey":                   adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796016108),
		"429-unified-overage-off":       adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796015225),
		"429-unified-7d-opus":           adaptertest.Exhausted(sdk.ScopeModel, "seven_day_opus", 1796267224),
		"claim-429-5honly":              adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796011004),
		"claim-429-claim7":              adaptertest.Exhausted(sdk.ScopeAccount, windowSevenDay, 1796010992),
		"claim-429-min":                 adaptertest.Exhausted(sdk.ScopeAccount, "", 1796010987),
		"claim-429-overage":             adaptertest.Exhausted(sdk.ScopeAccount, "", 1796097395),
		"claim-429-unknownclaim":        adaptertest.Exhausted(sdk.ScopeAccount, "", 1796011000),
		"claim-429-warn":                adaptertest.Throttled(0),
		"nofallback":                    overloaded,
		"nonstream-529":                 adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"sse-err-first-ratelimit":       adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"sse-err-after-start-ratelimit": adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"sse-err-mid-ratelimit":         adaptertest.Exhausted(sdk.ScopeAccount, "", 0),
		"sse-err-first-auth":            unsigned,
		"sse-err-first-invalid":         passed,
		"sse-err-first-api":             overloaded, "sse-err-mid-api": overloaded,
		"sse-err-first-overloaded": overloaded, "sse-err-after-start-overloaded": overloaded,
		"sse-err-afterblock-overloaded": overloaded, "sse-err-in-thinking-overloaded": overloaded,
		"sse-err-after-thinking-overloaded": overloaded, "sse-err-after-tool-overloaded": overloaded,
	}
	adaptertest.ClassifyAll(t, New(), adaptertest.ReadAnswers(t, "testdata/reactions/*.http"), evidence, want)
}

func TestClassifyHostileAnswers(t *testing.T) {
	want := map[string]judged{
		"u03-429-sec": adaptertest.Throttled(30 * time.Second), "u03-429-frac": adaptertest.Throttled(1500 * time.Millisecond),
		"u03-429-date": adaptertest.Throttled(15 * time.Second), "u03-429-past": adaptertest.Throttled(0), "u03-429-huge": adaptertest.Throttled(0), "u03-429-neg": adaptertest.Throttled(0),
		"u04-429-quota":     adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796014800),
		"u08-401-html":      unsigned,
		"u09-403-challenge": overloaded, "u10-529": overloaded,
	}
	for id, expected := range want {
		t.Run(id, func(t *testing.T) {
			resp := evidence(adaptertest.ReadAnswer(t, filepath.Join("testdata/hostile", id+".http")))
			if id == "u03-429-date" {
				resp.ObservedAt = time.Date(2026, 11, 30, 4, 59, 45, 0, time.UTC)
			}
			check(t, resp, expected)
		})
	}
}

func TestEveryRejectedWindowBlocksUntilTheLastOneClears(t *testing.T) {
	e := adaptertest.Exchange{Status: 429, ObservedAt: 1796000000, Headers: map[string]string{
		headerPrefix + "status":               rejected,
		headerPrefix + "5h-status":            rejected,
		headerPrefix + "5h-reset":             "1796010000",
		headerPrefix + "7d-status":            rejected,
		headerPrefix + "7d-reset":             "1796200000",
		headerPrefix + "7d_opus-status":       rejected,
		headerPrefix + "7d_opus-reset":        "1796300000",
		headerPrefix + "representative-claim": windowFiveHour,
	}}
	v := check(t, evidence(e), adaptertest.Exhausted(sdk.ScopeAccount, windowSevenDay, 1796200000))
	var exhausted []string
	for _, w := range v.Windows {
		if w.State == sdk.StateExhausted && w.Source == sdk.SourceRejection {
			exhausted = append(exhausted, w.ID)
		}
	}
	if !slices.Equal(exhausted, []string{windowFiveHour, windowSevenDay, "seven_day_opus"}) {
		t.Errorf("exhausted windows = %v", exhausted)
	}
}

func TestARejectionInsideAStreamIsReadFromTheHeadersOfItsAnswer(t *testing.T) {
	e := adaptertest.Exchange{Status: 200, ObservedAt: 1796000000, Headers: map[string]string{
		headerPrefix + "status": rejected, headerPrefix + "reset": "1796010000", headerPrefix + "representative-claim": windowFiveHour,
	}}
	resp := evidence(e)
	resp.Event = &sdk.Event{Type: "error", Data: []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"Error"}}`)}
	check(t, resp, adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 1796010000))
}

func TestARejectionInsideAStreamThatWasAllowedIsOfNoNamedWindow(t *testing.T) {
	e := adaptertest.Exchange{Status: 200, ObservedAt: 1796000000, Headers: map[string]string{
		headerPrefix + "status": "allowed", headerPrefix + "reset": "1796010000", headerPrefix + "representative-claim": windowFiveHour,
		headerPrefix + "5h-status": "allowed", headerPrefix + "5h-utilization": "0.2", headerPrefix + "5h-reset": "1796010000",
	}}
	resp := evidence(e)
	resp.Event = &sdk.Event{Type: "error", Data: []byte(`{"error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`)}
	check(t, resp, adaptertest.Exhausted(sdk.ScopeAccount, "", 0))
}

func TestAResetThatIsOverOrAbsurdLeavesTheRejectionWithoutATime(t *testing.T) {
	for name, reset := range map[string]string{"over": "1795999990", "years away": "1996000000", "milliseconds": "1796010000000", "no number": "soon"} {
		t.Run(name, func(t *testing.T) {
			e := adaptertest.Exchange{Status: 429, ObservedAt: 1796000000, Headers: map[string]string{
				headerPrefix + "5h-status": rejected, headerPrefix + "5h-reset": reset,
			}}
			check(t, evidence(e), adaptertest.Exhausted(sdk.ScopeAccount, windowFiveHour, 0))
		})
	}
}

func TestBodiesThatAreNoErrorsAreUnknown(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "no JSON": "<html>", "an array": "[]", "a text": `"error"`, "null": "null",
		"a type of another kind": `{"error":{"type":7,"message":[]}}`, "an unknown type": `{"error":{"type":"made_up"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp := sdk.Response{Status: 200, Event: &sdk.Event{Type: "error", Data: []byte(data)}}
			check(t, resp, judged{Outcome: sdk.OutcomeUnknownError, Scope: sdk.ScopeRequest})
		})
	}
}
