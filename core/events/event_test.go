package events

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSanitized(t *testing.T) {
	tests := []struct {
		rule  string
		event Event
		field func(Event) string
		want  string
	}{
		{"a listed reason stays", Event{Reason: "usage_limit_reached"}, func(e Event) string { return string(e.Reason) }, "usage_limit_reached"},
		{"an unlisted reason does not", Event{Reason: "the user asked for a poem"}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"a secret for a reason does not", Event{Reason: "sk-ant-oat01-abcdefgh"}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"an adapter's code for a verdict stays", Event{Operation: OperationAttempt, Reason: "monthly_pages_used_up"}, func(e Event) string { return string(e.Reason) }, "monthly_pages_used_up"},
		{"so it does with the failover that it causes", Event{Operation: OperationFailover, Reason: "pages2"}, func(e Event) string { return string(e.Reason) }, "pages2"},
		{"and with a detour", Event{Operation: OperationDetour, Reason: "pages2"}, func(e Event) string { return string(e.Reason) }, "pages2"},
		{"a sentence for a verdict does not", Event{Operation: OperationAttempt, Reason: "the user asked for a poem"}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"a verdict's code of another form does not", Event{Operation: OperationAttempt, Reason: "Pages"}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"nor a longer one", Event{Operation: OperationAttempt, Reason: Reason(strings.Repeat("a_", 40))}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"a key for a verdict's code is redacted", Event{Operation: OperationAttempt, Reason: "sk_live_abc"}, func(e Event) string { return string(e.Reason) }, Redacted},
		{"so is a long random word", Event{Operation: OperationAttempt, Reason: "f86d081884c7d659a2feaa0c55ad015a"}, func(e Event) string { return string(e.Reason) }, Redacted},
		{"codes are for verdicts alone", Event{Operation: OperationRequest, Reason: "pages2"}, func(e Event) string { return string(e.Reason) }, "unlisted"},
		{"an unlisted operation does not", Event{Operation: "rm"}, func(e Event) string { return string(e.Operation) }, "unlisted"},
		{"an unlisted outcome does not", Event{Outcome: "great"}, func(e Event) string { return string(e.Outcome) }, "unlisted"},
		{"an unlisted state does not", Event{State: "confused"}, func(e Event) string { return string(e.State) }, "unlisted"},
		{"an unlisted route does not", Event{Route: "scenic"}, func(e Event) string { return string(e.Route) }, "unlisted"},
		{"an unlisted component does not", Event{Component: "kernel"}, func(e Event) string { return string(e.Component) }, "unlisted"},
		{"an empty word stays empty", Event{}, func(e Event) string { return string(e.Reason) }, ""},
		{"a model's name stays", Event{Model: "claude-opus-4-1-20250805[1m]"}, func(e Event) string { return e.Model }, "claude-opus-4-1-20250805[1m]"},
		{"a key for a model is redacted", Event{Model: "sk-ant-api03-AAAA"}, func(e Event) string { return e.Model }, Redacted},
		{"a web token for a model is redacted", Event{Model: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln"}, func(e Event) string { return e.Model }, Redacted},
		{"a long random word for a model is redacted", Event{Model: "9f86d081884c7d659a2feaa0c55ad015"}, func(e Event) string { return e.Model }, Redacted},
		{"an escape in a model is redacted", Event{Model: "gpt\x1b[31m"}, func(e Event) string { return e.Model }, Redacted},
		{"a sentence for a model is redacted", Event{Model: "write me a poem"}, func(e Event) string { return e.Model }, Redacted},
		{"a line break in an account is redacted", Event{Account: "a\nb"}, func(e Event) string { return e.Account }, Redacted},
		{"letters beyond ASCII are redacted", Event{Account: "zürich"}, func(e Event) string { return e.Account }, Redacted},
		{"a name beyond the bound is redacted", Event{Account: strings.Repeat("a-", 60)}, func(e Event) string { return e.Account }, Redacted},
		{"a request id stays", Event{RequestID: "01JDX5M8T5Z3Q6W7E8R9T0Y1U2"}, func(e Event) string { return e.RequestID }, "01JDX5M8T5Z3Q6W7E8R9T0Y1U2"},
		{"punctuation in a session hash is redacted", Event{SessionHash: "ab/../cd"}, func(e Event) string { return e.SessionHash }, Redacted},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.field(test.event.Sanitized()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSanitizedNumbersAreNeverNegative(t *testing.T) {
	e := Event{Status: -7, Duration: -1, FirstByte: math.MinInt64, Overhead: -time.Hour, BytesUp: -1, BytesDown: -1}.Sanitized()
	if e.Status != 0 || e.Duration != 0 || e.FirstByte != 0 || e.Overhead != 0 || e.BytesUp != 0 || e.BytesDown != 0 {
		t.Errorf("kept %+v", e)
	}
}

// Whatever comes in as a name, an event is one printable line of JSON without the secret.
func TestNoTextPassesThroughAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "sk-ant-oat01-" + rapid.StringMatching(`[A-Za-z0-9_-]{20,60}`).Draw(t, "secret")
		text := rapid.SampledFrom([]string{secret, rapid.String().Draw(t, "text"), "x\n" + secret, "{" + secret}).Draw(t, "value")
		operation := rapid.SampledFrom([]Operation{Operation(text), OperationAttempt, OperationFailover}).Draw(t, "operation")
		line, err := json.Marshal(Event{
			Component: Component(text), Operation: operation, State: State(text), RequestID: text, SessionHash: text,
			Provider: text, Account: text, From: text, Model: text, Route: Route(text), Outcome: Outcome(text),
			Reason: Reason(text),
		}.Sanitized())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(line), secret) {
			t.Fatalf("secret in %s", line)
		}
		for _, b := range line {
			if b < ' ' || b > '~' {
				t.Fatalf("unprintable byte %#x in %q", b, line)
			}
		}
	})
}
