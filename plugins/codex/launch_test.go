package codex

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

func TestLaunchIsForOneInvocationAndTheKeyForItsEnvironment(t *testing.T) {
	a := New()
	if _, err := a.LaunchCommand(t.Context(), sdk.LaunchRequest{}); err == nil {
		t.Error("an adapter without configuration launched something")
	}
	config, err := sdk.NewConfig(map[string]any{"client": "/opt/codex"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	provider := `model_providers.noria={name="noria",base_url="{{base_url}}",env_http_headers={"x-noria-key"="NORIA_KEY"}}`
	for native, want := range map[bool][]string{
		false: {"/opt/codex", "-c", `model_provider="noria"`, "-c", provider, "{{args}}"},
		true:  {"/opt/codex", "-c", `openai_base_url="{{base_url}}"`, "{{args}}"},
	} {
		command, err := a.LaunchCommand(t.Context(), sdk.LaunchRequest{Native: native})
		if err != nil || !slices.Equal(command.Argv, want) {
			t.Errorf("native %v: argv = %q, %v", native, command.Argv, err)
		}
		if strings.Contains(strings.Join(command.Argv, " "), "{{key}}") || command.Env["NO_PROXY"] != "{{no_proxy}}" {
			t.Errorf("native %v: %+v", native, command)
		}
		if (command.Env["NORIA_KEY"] == "{{key}}") == native {
			t.Errorf("native %v: environment = %v", native, command.Env)
		}
	}
}

const sentence = `3 accounts: 2 weekly exhausted, 1 "signed out" – sorry.`

func TestUnavailableSpeaksTheClientsLanguage(t *testing.T) {
	at := adaptertest.Unix(1796000000)
	quota, auth := map[sdk.Cause]int{sdk.CauseQuota: 2, sdk.CauseAuth: 1}, map[sdk.Cause]int{sdk.CauseAuth: 3}
	cases := []struct {
		name   string
		causes map[sdk.Cause]int
		reset  time.Time
		limit  bool
	}{
		{"quota with a time is a usage limit", quota, at.Add(time.Hour), true},
		{"quota without a time is a plain sentence", quota, time.Time{}, false},
		{"a time that is over is none", quota, at.Add(-time.Second), false},
		{"signing in is not quota", auth, at.Add(time.Hour), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			answer, err := New().Unavailable(t.Context(), sdk.Unavailability{Causes: c.causes, ForecastAt: c.reset, Now: at, Sentence: sentence})
			if err != nil || answer.Header["retry-after"] != "" {
				t.Fatalf("answer %v, %v", answer.Header, err)
			}
			if !c.limit {
				if answer.Status != http.StatusBadRequest || string(answer.Body) != sentence {
					t.Errorf("answer %d %s", answer.Status, answer.Body)
				}
				return
			}
			var body struct {
				Error struct {
					Type, Message   string
					ResetsAt        int64 `json:"resets_at"`
					ResetsInSeconds int64 `json:"resets_in_seconds"`
				}
			}
			if err := json.Unmarshal(answer.Body, &body); err != nil || answer.Status != http.StatusTooManyRequests {
				t.Fatalf("answer %d %s, %v", answer.Status, answer.Body, err)
			}
			if e := body.Error; e.Type != "usage_limit_reached" || e.Message != sentence || e.ResetsAt != c.reset.Unix() || e.ResetsInSeconds != 3601 {
				t.Errorf("error = %+v", e)
			}
			if promo := answer.Header["x-codex-promo-message"]; promo != strings.TrimSuffix(strings.ReplaceAll(sentence, "–", " "), ".") {
				t.Errorf("promo message = %q", promo)
			}
		})
	}
}

func TestWhatMayBeOverAtAnyMomentIsLeftToTheClientToRetry(t *testing.T) {
	at := adaptertest.Unix(1796000000)
	for name, causes := range map[string]map[sdk.Cause]int{
		"the network of all accounts":      {sdk.CauseNetwork: 3},
		"the network of one, beside quota": {sdk.CauseQuota: 2, sdk.CauseNetwork: 1},
		"a late credential beside quota":   {sdk.CauseQuota: 2, sdk.CauseCredential: 1},
		"a throttle without a known end":   {sdk.CauseQuota: 2, sdk.CauseThrottled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := New().Unavailable(t.Context(), sdk.Unavailability{
				Causes: causes, ForecastAt: at.Add(time.Hour), ForecastKind: sdk.ForecastNoLaterThan, Now: at, Sentence: sentence,
			})
			// Not 400 or 429, which end the turn, not 401, and no 5xx, which the client repeats thirty times.
			if err != nil || answer.Status != http.StatusFailedDependency || string(answer.Body)+"." != sentence {
				t.Fatalf("answer %d %s, %v", answer.Status, answer.Body, err)
			}
			if pause, err := strconv.Atoi(answer.Header["retry-after"]); err != nil || pause > 5 {
				t.Errorf("the client waits %s seconds in silence", answer.Header["retry-after"])
			}
		})
	}
}

func TestFallbacksNeverMakeTheClientRetryOrLogOut(t *testing.T) {
	f := fallbacks()
	for name, c := range map[string]struct {
		answer sdk.Answer
		status int
	}{
		"wrong key": {f.WrongKey, http.StatusBadRequest}, "unknown path": {f.UnknownPath, http.StatusNotFound},
		"until": {f.UnavailableUntil, http.StatusTooManyRequests}, "unavailable": {f.Unavailable, http.StatusBadRequest},
		"adapter away": {f.AdapterAway, http.StatusBadRequest},
	} {
		if c.answer.Status != c.status || len(c.answer.Body) == 0 {
			t.Errorf("%s: %d %s", name, c.answer.Status, c.answer.Body)
		}
	}
	filled := strings.NewReplacer("{{sentence}}", "made up", "{{reset_unix}}", "1796003600", "{{reset_seconds}}", "3600").Replace(string(f.UnavailableUntil.Body))
	if !json.Valid([]byte(filled)) || f.UnavailableUntil.Header["x-codex-promo-message"] != "{{sentence}}" {
		t.Errorf("template = %v %s", f.UnavailableUntil.Header, filled)
	}
}
