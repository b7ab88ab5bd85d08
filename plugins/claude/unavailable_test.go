package claude

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

const sentence = `3 accounts: 2 weekly exhausted, 1 "signed out".`

func TestUnavailableSpeaksTheClientsLanguage(t *testing.T) {
	now := adaptertest.Unix(1796000000)
	limit := func(claim, reset string) map[string]string {
		return map[string]string{headerPrefix + "status": rejected, headerPrefix + "reset": reset, headerPrefix + "representative-claim": claim}
	}
	cases := []struct {
		name   string
		req    sdk.Unavailability
		status int
		header map[string]string
	}{
		{"quota with a known window is a limit with its time",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 3}, GoverningWindow: windowSevenDay, ForecastAt: adaptertest.Unix(1796003600)},
			http.StatusTooManyRequests, limit(windowSevenDay, "1796003600")},
		{"quota of mixed windows names none of the client's",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 2, sdk.CauseAuth: 1}, ForecastAt: adaptertest.Unix(1796003600)},
			http.StatusTooManyRequests, limit(mixedClaim, "1796003600")},
		{"a window that the client has no word for is not told",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 1}, GoverningWindow: "5h\r\nx: y", ForecastAt: adaptertest.Unix(1796003600)},
			http.StatusTooManyRequests, limit(mixedClaim, "1796003600")},
		{"quota without a time is no limit", sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 3}}, http.StatusServiceUnavailable, nil},
		{"a time that is over is none",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 3}, ForecastAt: now.Add(-time.Second)}, http.StatusServiceUnavailable, nil},
		{"signing in is not quota",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseAuth: 3}, ForecastAt: adaptertest.Unix(1796003600)}, http.StatusServiceUnavailable, nil},
		{"a throttle whose end the provider told has its time",
			sdk.Unavailability{Causes: map[sdk.Cause]int{sdk.CauseQuota: 1, sdk.CauseThrottled: 1}, ForecastAt: adaptertest.Unix(1796003600), ForecastKind: sdk.ForecastExact},
			http.StatusTooManyRequests, limit(mixedClaim, "1796003600")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.req.Now, c.req.Sentence = now, sentence
			answer, err := New().Unavailable(t.Context(), c.req)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status != c.status || messageOf(t, answer) != sentence {
				t.Errorf("answer %d %q", answer.Status, messageOf(t, answer))
			}
			if answer.Header["x-should-retry"] != "false" {
				t.Errorf("header = %v", answer.Header)
			}
			for name, value := range answer.Header {
				if strings.HasPrefix(name, headerPrefix) && c.header[name] != value {
					t.Errorf("%s: %q, want %q", name, value, c.header[name])
				}
			}
			for name, value := range c.header {
				if answer.Header[name] != value {
					t.Errorf("%s: %q, want %q", name, answer.Header[name], value)
				}
			}
		})
	}
}

func TestWhatMayBeOverAtAnyMomentIsLeftToTheClientToRetry(t *testing.T) {
	for name, causes := range map[string]map[sdk.Cause]int{
		"the network of all accounts":        {sdk.CauseNetwork: 3},
		"the network of one, beside quota":   {sdk.CauseQuota: 2, sdk.CauseNetwork: 1},
		"the network of one, beside sign-in": {sdk.CauseAuth: 2, sdk.CauseNetwork: 1},
		"a late credential beside quota":     {sdk.CauseQuota: 2, sdk.CauseCredential: 1},
		"a throttle without a known end":     {sdk.CauseQuota: 2, sdk.CauseThrottled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := New().Unavailable(t.Context(), sdk.Unavailability{
				Causes: causes, GoverningWindow: windowSevenDay, ForecastAt: adaptertest.Unix(1796003600), ForecastKind: sdk.ForecastNoLaterThan,
				Now: adaptertest.Unix(1796000000), Sentence: sentence,
			})
			if err != nil || answer.Status != http.StatusServiceUnavailable || messageOf(t, answer) != sentence {
				t.Fatalf("answer %d %s, %v", answer.Status, answer.Body, err)
			}
			for header := range answer.Header {
				if header != "content-type" {
					t.Errorf("header %s: the client takes it for a limit, or does not ask again", header)
				}
			}
		})
	}
}

func TestFallbacksStandForTheAdaptersAnswers(t *testing.T) {
	f := fallbacks()
	for name, c := range map[string]struct {
		answer sdk.Answer
		status int
	}{
		"wrong key": {f.WrongKey, http.StatusUnauthorized}, "unknown path": {f.UnknownPath, http.StatusNotFound},
		"until": {f.UnavailableUntil, http.StatusTooManyRequests}, "unavailable": {f.Unavailable, http.StatusServiceUnavailable},
		"adapter away": {f.AdapterAway, http.StatusServiceUnavailable},
	} {
		if c.answer.Status != c.status || messageOf(t, c.answer) == "" || c.answer.Header["x-should-retry"] != "false" {
			t.Errorf("%s: %d %v %s", name, c.answer.Status, c.answer.Header, c.answer.Body)
		}
	}
	if f.UnavailableUntil.Header[headerPrefix+"reset"] != "{{reset_unix}}" || messageOf(t, f.UnavailableUntil) != "{{sentence}}" {
		t.Errorf("template = %v %s", f.UnavailableUntil.Header, f.UnavailableUntil.Body)
	}
}

func messageOf(t *testing.T, answer sdk.Answer) string {
	t.Helper()
	var body struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil || body.Type != "error" || body.Error.Type == "" {
		t.Errorf("body %s is not the provider's: %v", answer.Body, err)
	}
	return body.Error.Message
}
