package plugin

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestVerdict(t *testing.T) {
	const (
		quotaOut = providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED
		authOut  = providerv1.Outcome_OUTCOME_AUTH_FAILED
		unknown  = providerv1.Outcome_OUTCOME_UNKNOWN_ERROR
		throttle = providerv1.Outcome_OUTCOME_THROTTLED
		over     = providerv1.Outcome_OUTCOME_OVERLOADED
		accepted = providerv1.Outcome_OUTCOME_ACCEPTED

		account = providerv1.Scope_SCOPE_ACCOUNT
		model   = providerv1.Scope_SCOPE_MODEL
		request = providerv1.Scope_SCOPE_REQUEST
		all     = providerv1.Scope_SCOPE_PROVIDER
	)
	event := &providerv1.ClassifyRequest{Model: "opus", Evidence: &providerv1.ClassifyRequest_Event{Event: &providerv1.Event{}}}
	status := &providerv1.ClassifyRequest{Model: "opus", Status: 429}
	nameless := &providerv1.ClassifyRequest{Status: 429}
	cases := []struct {
		name    string
		asked   *providerv1.ClassifyRequest
		answer  *providerv1.ClassifyResponse
		outcome providerv1.Outcome
		scope   providerv1.Scope
		cause   quota.Cause
		model   string
	}{
		{"quota of an account", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: account}, quotaOut, account, quota.CauseQuota, ""},
		{"quota of the request's model", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model}, quotaOut, model, quota.CauseQuota, "opus"},
		{"quota of a named model", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model, Model: "haiku"}, quotaOut, model, quota.CauseQuota, "haiku"},
		{"a model that nobody named blocks nothing", nameless, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model}, unknown, request, "", ""},
		{"quota of a provider contradicts itself", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: all}, unknown, request, "", ""},
		{"quota without a scope is not guessed", status, &providerv1.ClassifyResponse{Outcome: quotaOut}, unknown, request, "", ""},
		{"sign-in has one scope", status, &providerv1.ClassifyResponse{Outcome: authOut}, authOut, account, quota.CauseAuth, ""},
		{"sign-in of a request contradicts itself", status, &providerv1.ClassifyResponse{Outcome: authOut, Scope: request}, unknown, request, "", ""},
		{"throttled account", status, &providerv1.ClassifyResponse{Outcome: throttle, Scope: account}, throttle, account, quota.CauseThrottle, ""},
		{"throttled request is no rejection", status, &providerv1.ClassifyResponse{Outcome: throttle, Scope: request}, throttle, request, "", ""},
		{"overloaded says nothing about an account", status, &providerv1.ClassifyResponse{Outcome: over, Scope: account}, over, all, "", ""},
		{"unspecified is a bug", status, &providerv1.ClassifyResponse{}, unknown, request, "", ""},
		{"an outcome of tomorrow", status, &providerv1.ClassifyResponse{Outcome: 77, Scope: account}, unknown, request, "", ""},
		{"nothing at all", status, nil, unknown, request, "", ""},
		{"an event can be acceptance", event, &providerv1.ClassifyResponse{Outcome: accepted}, accepted, request, "", ""},
		{"a failed response is none", status, &providerv1.ClassifyResponse{Outcome: accepted}, unknown, request, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := testCheck.verdict(c.answer, c.asked, testNow, testNow)
			if v.Outcome != c.outcome || v.Scope != c.scope || v.Rejection.Cause != c.cause || v.Rejection.Model != c.model {
				t.Errorf("got %v %v cause %q model %q", v.Outcome, v.Scope, v.Rejection.Cause, v.Rejection.Model)
			}
		})
	}
}

func TestVerdictDetailsAreBounded(t *testing.T) {
	answer := &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_THROTTLED, Scope: providerv1.Scope_SCOPE_ACCOUNT,
		Reason: "Text from outside!", RetryAfterMs: math.MaxInt64, WindowId: "x\x1b", ClearsAt: &timestamppb.Timestamp{Seconds: 1796014800000}}
	v := testCheck.verdict(answer, &providerv1.ClassifyRequest{}, testNow, testNow)
	if v.Reason != "unspecified" || v.Rejection.RetryAfter != maxRetryAfter || v.Rejection.WindowID != "" || !v.Rejection.ClearsAt.IsZero() {
		t.Errorf("got %+v", v)
	}
	answer.RetryAfterMs, answer.Reason = -5, "rate_limited"
	answer.ClearsAt = timestamppb.New(testNow.Add(-time.Second))
	v = testCheck.verdict(answer, &providerv1.ClassifyRequest{}, testNow, testNow)
	if v.Reason != "rate_limited" || v.Rejection.RetryAfter != 0 || !v.Rejection.ClearsAt.IsZero() {
		t.Errorf("got %+v", v)
	}
}

func lease(change func(*providerv1.Lease)) *providerv1.LeaseResponse {
	l := &providerv1.Lease{BaseUrl: "https://api.example/v1", Set: []*providerv1.Header{{Name: "authorization", Value: "Bearer x"}},
		ValidUntil: timestamppb.New(testNow.Add(time.Minute)), Generation: "g1"}
	change(l)
	return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Lease{Lease: l}}
}

func TestLeaseIsChecked(t *testing.T) {
	url := func(u string) func(*providerv1.Lease) { return func(l *providerv1.Lease) { l.BaseUrl = u } }
	set := func(name, value string) func(*providerv1.Lease) {
		return func(l *providerv1.Lease) { l.Set = []*providerv1.Header{{Name: name, Value: value}} }
	}
	cases := []struct {
		name   string
		change func(*providerv1.Lease)
		ok     bool
	}{
		{"https", func(*providerv1.Lease) {}, true},
		{"http on loopback", url("http://127.0.0.1:9000/x"), true},
		{"http on loopback by name", url("http://localhost:9000"), true},
		{"http on loopback, version 6", url("http://[::1]:9000"), true},
		{"http elsewhere", url("http://api.example"), false},
		{"http on a name that looks like loopback", url("http://127.0.0.1.example"), false},
		{"user in the URL", url("https://user@api.example"), false},
		{"query in the URL", url("https://api.example?x=1"), false},
		{"fragment in the URL", url("https://api.example#x"), false},
		{"another scheme", url("file:///etc/passwd"), false},
		{"no host", url("https:///x"), false},
		{"line break in the URL", url("https://api.example/\r\nx"), false},
		{"empty URL", url(""), false},
		{"line break in a value", set("authorization", "x\r\ny: z"), false},
		{"colon in a name", set("a:b", "x"), false},
		{"host header", set("Host", "x"), false},
		{"framing header", set("Transfer-Encoding", "chunked"), false},
		{"value of a megabyte", set("x", strings.Repeat("x", 1<<20)), false},
		{"removes framing", func(l *providerv1.Lease) { l.Remove = []string{"content-length"} }, false},
		{"extends a list", func(l *providerv1.Lease) { l.Extend = []*providerv1.Header{{Name: "anthropic-beta", Value: "x"}} }, true},
		{"over already", func(l *providerv1.Lease) { l.ValidUntil = timestamppb.New(testNow) }, false},
		{"escape in the generation", func(l *providerv1.Lease) { l.Generation = "\x1b" }, false},
		{"too many headers", func(l *providerv1.Lease) { l.Remove = make([]string, maxLeaseParts+1) }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := testCheck.lease(lease(c.change), testNow)
			if (err == nil) != c.ok {
				t.Fatalf("got %v", err)
			}
			if err != nil && (!errors.Is(err, ErrBadAnswer) || strings.Contains(err.Error(), "Bearer")) {
				t.Errorf("got %v", err)
			}
			if err == nil && (got.ValidUntil.After(testNow.Add(leaseCap)) || !got.ValidUntil.After(testNow)) {
				t.Errorf("valid until %v", got.ValidUntil)
			}
		})
	}
}

func TestLeaseIsValidForFiveMinutesAtMost(t *testing.T) {
	for name, until := range map[string]*timestamppb.Timestamp{
		"none given": nil, "a year": timestamppb.New(testNow.AddDate(1, 0, 0)), "year 57883": {Seconds: 1764480000000},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testCheck.lease(lease(func(l *providerv1.Lease) { l.ValidUntil = until }), testNow)
			must(t, err)
			if !got.ValidUntil.Equal(testNow.Add(leaseCap)) {
				t.Errorf("valid until %v", got.ValidUntil)
			}
		})
	}
}

func TestRefusalOfALeaseIsTyped(t *testing.T) {
	refusal := func(code providerv1.RefusalCode, reason string) *providerv1.LeaseResponse {
		return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Refusal{Refusal: &providerv1.Refusal{Code: code, Reason: reason}}}
	}
	cases := []struct {
		name   string
		answer *providerv1.LeaseResponse
		code   providerv1.RefusalCode
		reason string
	}{
		{"signed out", refusal(providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "run noria connect"), providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "run noria connect"},
		{"a code of tomorrow holds nothing against the account", refusal(42, "x"), providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, "x"},
		{"no code", refusal(0, ""), providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, "the adapter gave no reason"},
		{"escapes and credentials", refusal(1, "a\x1b[2J "+canary), providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "a?[2J [redacted]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := testCheck.lease(c.answer, testNow)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != c.code || refused.Reason != c.reason {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := testCheck.lease(&providerv1.LeaseResponse{}, testNow); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("neither lease nor refusal: %v", err)
	}
}

func TestCommandForTheTerminalIsChecked(t *testing.T) {
	cases := []struct {
		name  string
		given *providerv1.OfficialCommand
		ok    bool
	}{
		{"plain", &providerv1.OfficialCommand{Argv: []string{"claude", "{{args}}"}, Environment: map[string]string{"A": "{{base_url}}"}, Unset: []string{"B"}}, true},
		{"none", nil, false},
		{"empty program", &providerv1.OfficialCommand{Argv: []string{""}}, false},
		{"NUL", &providerv1.OfficialCommand{Argv: []string{"a\x00b"}}, false},
		{"bad variable", &providerv1.OfficialCommand{Argv: []string{"a"}, Environment: map[string]string{"A=B": "x"}}, false},
		{"bad name to unset", &providerv1.OfficialCommand{Argv: []string{"a"}, Unset: []string{"A B"}}, false},
		{"too many arguments", &providerv1.OfficialCommand{Argv: make([]string, maxArgv+1)}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := testCheck.command(c.given); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestModelsAreBounded(t *testing.T) {
	given := &providerv1.ListModelsResponse{ClientVersion: "1.0\x1b", Source: "model/list"}
	for range maxCatalog + 10 {
		given.Models = append(given.Models, &providerv1.Model{Id: "m", Efforts: make([]string, 100)})
	}
	given.Models[0].Id, given.Models[1].Id = "", "x\x1b"
	got := testCheck.models(given, testNow)
	if len(got.Models) != maxCatalog-2 || len(got.Models[0].Efforts) != maxEfforts || got.ClientVersion != "1.0?" || !got.ReadAt.Equal(testNow) {
		t.Errorf("%d models, %d efforts, client %q", len(got.Models), len(got.Models[0].Efforts), got.ClientVersion)
	}
}
