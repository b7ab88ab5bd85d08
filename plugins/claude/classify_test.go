package claude

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// judged is what a verdict must say.
type judged struct {
	outcome sdk.Outcome
	scope   sdk.Scope
	window  string
	// clears is in seconds since 1970; 0: unknown.
	clears int64
	retry  time.Duration
}

var (
	passed     = judged{outcome: sdk.OutcomeClientError, scope: sdk.ScopeRequest}
	overloaded = judged{outcome: sdk.OutcomeOverloaded, scope: sdk.ScopeProvider}
	unsigned   = judged{outcome: sdk.OutcomeAuthFailed, scope: sdk.ScopeAccount}
	noAccount  = judged{outcome: sdk.OutcomeNotEntitled, scope: sdk.ScopeAccount}
	noModel    = judged{outcome: sdk.OutcomeNotEntitled, scope: sdk.ScopeModel}
	throttle   = judged{outcome: sdk.OutcomeThrottled, scope: sdk.ScopeAccount}
	everywhere = judged{outcome: sdk.OutcomeThrottled, scope: sdk.ScopeRequest}
	lost       = judged{outcome: sdk.OutcomeContinuityLost, scope: sdk.ScopeRequest}
)

func spentAccount(window string, clears int64) judged {
	return judged{outcome: sdk.OutcomeQuotaExhausted, scope: sdk.ScopeAccount, window: window, clears: clears}
}

func spentModel(window string, clears int64) judged {
	return judged{outcome: sdk.OutcomeQuotaExhausted, scope: sdk.ScopeModel, window: window, clears: clears}
}

func (j judged) after(retry time.Duration) judged {
	j.retry = retry
	return j
}

func check(t *testing.T, resp sdk.Response, want judged) sdk.Verdict {
	t.Helper()
	v, err := New().Classify(t.Context(), sdk.Account{}, resp)
	if err != nil {
		t.Fatal(err)
	}
	got := judged{v.Outcome, v.Scope, v.WindowID, 0, v.RetryAfter}
	if !v.ClearsAt.IsZero() {
		got.clears = v.ClearsAt.Unix()
	}
	if got != want {
		t.Errorf("verdict = %+v, want %+v", got, want)
	}
	if v.Reason == "" || strings.Trim(v.Reason, "abcdefghijklmnopqrstuvwxyz_") != "" {
		t.Errorf("reason %q is no code", v.Reason)
	}
	return v
}

func TestClassifyUpstreamAnswers(t *testing.T) {
	const base, week = 1796000000, 7 * 86400
	want := map[string]judged{
		"claude-429-5h-exhausted":                       spentAccount(windowFiveHour, 1785518400),
		"claude-429-5h-windowed-only":                   spentAccount(windowFiveHour, 1785518400),
		"claude-429-windowless":                         everywhere,
		"claude-429-7d_oi-only":                         spentModel("seven_day_oi", base+120),
		"claude-429-aggregate-rejected-unknown-windows": spentAccount("", 0),
		"claude-429-fast-but-window":                    spentAccount(windowSevenDay, base+week),
		"claude-429-long-context":                       everywhere,
		"claude-429-out-of-extra-usage":                 everywhere,
		"claude-529":                                    overloaded,
		"claude-401-revoked":                            unsigned,
		"claude-403-revoked":                            unsigned,
		"claude-403-request-not-allowed":                noModel,
		"claude-400-org-disabled":                       noAccount,
		"claude-400-thinking-signature":                 lost,
		"claude-sse-error-after-ping":                   throttle,
		"claude-sse-error-after-message_start":          overloaded,
		"claude-sse-error-midstream":                    overloaded,
	}
	for id, e := range readUpstream(t) {
		judgeable := e.Status >= 400 || e.response().Event != nil
		expected, listed := want[id]
		if judgeable != listed {
			t.Errorf("%s: judgeable %v, expected %v", id, judgeable, listed)
		}
		if listed {
			t.Run(id, func(t *testing.T) { check(t, e.response(), expected) })
		}
	}
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
		"429-burst": throttle.after(2 * time.Second), "429-burst-long": throttle.after(2 * time.Minute),
		"429ra-ms":                      throttle.after(4 * time.Second),
		"429-unified-5h":                spentAccount(windowFiveHour, 1796015223),
		"429-unified-5h-ra":             spentAccount(windowFiveHour, 1796015226),
		"429-unified-5h-srt":            spentAccount(windowFiveHour, 1796015225),
		"429u-apikey":                   spentAccount(windowFiveHour, 1796016108),
		"429-unified-overage-off":       spentAccount(windowFiveHour, 1796015225),
		"429-unified-7d-opus":           spentModel("seven_day_opus", 1796267224),
		"claim-429-5honly":              spentAccount(windowFiveHour, 1796011004),
		"claim-429-claim7":              spentAccount(windowSevenDay, 1796010992),
		"claim-429-min":                 spentAccount("", 1796010987),
		"claim-429-overage":             spentAccount("", 1796097395),
		"claim-429-unknownclaim":        spentAccount("", 1796011000),
		"claim-429-warn":                throttle,
		"nofallback":                    overloaded,
		"nonstream-529":                 spentAccount("", 0),
		"sse-err-first-ratelimit":       spentAccount("", 0),
		"sse-err-after-start-ratelimit": spentAccount("", 0),
		"sse-err-mid-ratelimit":         spentAccount("", 0),
		"sse-err-first-auth":            unsigned,
		"sse-err-first-invalid":         passed,
		"sse-err-first-api":             overloaded, "sse-err-mid-api": overloaded,
		"sse-err-first-overloaded": overloaded, "sse-err-after-start-overloaded": overloaded,
		"sse-err-afterblock-overloaded": overloaded, "sse-err-in-thinking-overloaded": overloaded,
		"sse-err-after-thinking-overloaded": overloaded, "sse-err-after-tool-overloaded": overloaded,
	}
	for _, path := range names(t, "testdata/reactions/*.http") {
		e := readAnswer(t, path)
		expected, listed := want[e.ID]
		if !listed {
			t.Errorf("%s is not in the table", e.ID)
			continue
		}
		t.Run(e.ID, func(t *testing.T) { check(t, e.response(), expected) })
	}
}

func TestClassifyHostileAnswers(t *testing.T) {
	want := map[string]judged{
		"u03-429-sec": throttle.after(30 * time.Second), "u03-429-frac": throttle.after(1500 * time.Millisecond),
		"u03-429-date": throttle.after(15 * time.Second), "u03-429-past": throttle, "u03-429-huge": throttle, "u03-429-neg": throttle,
		"u04-429-quota":     spentAccount(windowFiveHour, 1796014800),
		"u08-401-html":      unsigned,
		"u09-403-challenge": overloaded, "u10-529": overloaded,
	}
	for id, expected := range want {
		t.Run(id, func(t *testing.T) {
			resp := readAnswer(t, filepath.Join("testdata/hostile", id+".http")).response()
			if id == "u03-429-date" {
				resp.ObservedAt = time.Date(2026, 11, 30, 4, 59, 45, 0, time.UTC)
			}
			check(t, resp, expected)
		})
	}
}

func TestEveryRejectedWindowBlocksUntilTheLastOneClears(t *testing.T) {
	e := exchange{Status: 429, ObservedAt: 1796000000, Headers: map[string]string{
		headerPrefix + "status":               rejected,
		headerPrefix + "5h-status":            rejected,
		headerPrefix + "5h-reset":             "1796010000",
		headerPrefix + "7d-status":            rejected,
		headerPrefix + "7d-reset":             "1796200000",
		headerPrefix + "7d_opus-status":       rejected,
		headerPrefix + "7d_opus-reset":        "1796300000",
		headerPrefix + "representative-claim": windowFiveHour,
	}}
	v := check(t, e.response(), spentAccount(windowSevenDay, 1796200000))
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
	e := exchange{Status: 200, ObservedAt: 1796000000, Headers: map[string]string{
		headerPrefix + "status": rejected, headerPrefix + "reset": "1796010000", headerPrefix + "representative-claim": windowFiveHour,
	}}
	resp := e.response()
	resp.Event = &sdk.Event{Type: "error", Data: []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"Error"}}`)}
	check(t, resp, spentAccount(windowFiveHour, 1796010000))
}

func TestAResetThatIsOverOrAbsurdLeavesTheRejectionWithoutATime(t *testing.T) {
	for name, reset := range map[string]string{"over": "1795999990", "years away": "1996000000", "milliseconds": "1796010000000", "no number": "soon"} {
		t.Run(name, func(t *testing.T) {
			e := exchange{Status: 429, ObservedAt: 1796000000, Headers: map[string]string{
				headerPrefix + "5h-status": rejected, headerPrefix + "5h-reset": reset,
			}}
			check(t, e.response(), spentAccount(windowFiveHour, 0))
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
			check(t, resp, judged{outcome: sdk.OutcomeUnknownError, scope: sdk.ScopeRequest})
		})
	}
}
