package codex

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// Classify reads a failed answer, or an error event of a stream. What the provider calls the error comes before the
// status, for a stream has none of its own.
func (*Adapter) Classify(_ context.Context, _ sdk.Account, resp sdk.Response) (sdk.Verdict, error) {
	f := readFailure(resp)
	if v, ok := classifyName(f, resp); ok {
		return v, nil
	}
	if resp.Event != nil {
		return verdict(sdk.OutcomeUnknownError, sdk.ScopeRequest, "unknown_error"), nil
	}
	return classifyStatus(f, resp.Status), nil
}

// classifyName judges by the error's code, or by its type when the code says nothing.
func classifyName(f failure, resp sdk.Response) (sdk.Verdict, bool) {
	for _, name := range []string{f.Code, f.Type} {
		switch name {
		case "usage_limit_reached":
			return exhausted(f, resp), true
		case "usage_not_included", "insufficient_quota":
			return verdict(sdk.OutcomeNotEntitled, sdk.ScopeAccount, name), true
		case "deactivated_workspace", "account_deactivated":
			return verdict(sdk.OutcomeNotEntitled, sdk.ScopeAccount, name), true
		case "token_expired", "token_invalidated", "token_revoked", "invalid_api_key":
			return verdict(sdk.OutcomeAuthFailed, sdk.ScopeAccount, name), true
		case "previous_response_not_found", "invalid_encrypted_content":
			return verdict(sdk.OutcomeContinuityLost, sdk.ScopeRequest, name), true
		case "server_is_overloaded", "slow_down", "server_error", "service_unavailable_error":
			return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "upstream_failure"), true
		case "rate_limit_exceeded", "rate_limit_error":
			v := verdict(sdk.OutcomeThrottled, sdk.ScopeAccount, "rate_limited")
			v.RetryAfter = f.pause(resp)
			return v, true
		case "context_length_exceeded", "invalid_prompt", "invalid_value", "websocket_connection_limit_reached",
			"unsupported_country_region_territory":
			return verdict(sdk.OutcomeClientError, sdk.ScopeRequest, "client_error"), true
		}
	}
	switch {
	case unsupportedModel.MatchString(f.Message):
		return verdict(sdk.OutcomeNotEntitled, sdk.ScopeModel, "model_not_supported"), true
	case fullModel.MatchString(f.Message):
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "model_at_capacity"), true
	}
	return sdk.Verdict{}, false
}

// Some refusals are told by their wording only.
var (
	unsupportedModel = regexp.MustCompile(`^The '[^']{1,128}' model is not supported when using Codex`)
	fullModel        = regexp.MustCompile(`^Selected model is at capacity`)
	pauseWording     = regexp.MustCompile(`try again in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s|seconds?)\b`)
)

func classifyStatus(f failure, status int) sdk.Verdict {
	switch {
	case status == http.StatusUnauthorized:
		return verdict(sdk.OutcomeAuthFailed, sdk.ScopeAccount, "unauthorized")
	case status == http.StatusPaymentRequired:
		return verdict(sdk.OutcomeNotEntitled, sdk.ScopeAccount, "payment_required")
	case status == http.StatusForbidden && !f.document:
		// A page that is not the provider's own comes from the edge in front of it and is about no account.
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "edge_refused")
	case status == http.StatusForbidden:
		return verdict(sdk.OutcomeNotEntitled, sdk.ScopeModel, "forbidden")
	case status == http.StatusTooManyRequests:
		return verdict(sdk.OutcomeThrottled, sdk.ScopeRequest, "rate_limited_request")
	case status == http.StatusRequestTimeout || status >= 500:
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "upstream_failure")
	case status >= 400:
		return verdict(sdk.OutcomeClientError, sdk.ScopeRequest, "client_error")
	}
	return verdict(sdk.OutcomeUnknownError, sdk.ScopeRequest, "unknown_error")
}

// failure is the error that a body or an event holds.
type failure struct {
	Type            string          `json:"type"`
	Code            string          `json:"code"`
	Message         string          `json:"message"`
	ResetsAt        json.RawMessage `json:"resets_at"`
	ResetsInSeconds json.RawMessage `json:"resets_in_seconds"`

	// document: there was JSON at all.
	document bool
}

// readFailure finds the error where the provider puts it: beside the event's type, under error, under a failed response,
// in its status details, or as detail, which is a text or a code.
func readFailure(resp sdk.Response) failure {
	data := resp.Body
	if resp.Event != nil {
		data = resp.Event.Data
	}
	var outer struct {
		Error    *failure        `json:"error"`
		Detail   json.RawMessage `json:"detail"`
		Response struct {
			Error         *failure `json:"error"`
			StatusDetails struct {
				Error *failure `json:"error"`
			} `json:"status_details"`
		} `json:"response"`
	}
	if !json.Valid(data) {
		return failure{}
	}
	// A field of an unexpected type leaves the others readable.
	_ = json.Unmarshal(data, &outer)
	for _, found := range []*failure{outer.Error, outer.Response.Error, outer.Response.StatusDetails.Error} {
		if found != nil {
			found.document = true
			return *found
		}
	}
	f := failure{document: true}
	switch {
	case len(outer.Detail) > 0 && json.Unmarshal(outer.Detail, &f.Message) == nil:
	case len(outer.Detail) > 0:
		_ = json.Unmarshal(outer.Detail, &f)
	case resp.Event != nil:
		_ = json.Unmarshal(data, &f)
	}
	return f
}

// reset is when the provider says that the limit is over; zero when it does not.
func (f failure) reset(observedAt time.Time) time.Time {
	if at := sdk.ResetWithin(unixOf(f.ResetsAt), observedAt, 0); at.After(observedAt) {
		return at
	}
	if seconds := wholeOf(f.ResetsInSeconds); seconds > 0 {
		return sdk.ResetWithin(observedAt.Add(time.Duration(seconds)*time.Second), observedAt, 0)
	}
	return time.Time{}
}

// pause is how long the provider asks to wait; 0 when it does not.
func (f failure) pause(resp sdk.Response) time.Duration {
	if pause := sdk.RetryAfter(resp.Header, resp.ObservedAt); pause > 0 {
		return pause
	}
	if at := f.reset(resp.ObservedAt); !at.IsZero() {
		return at.Sub(resp.ObservedAt)
	}
	found := pauseWording.FindStringSubmatch(f.Message)
	if found == nil {
		return 0
	}
	value, _ := sdk.ParseDecimal(found[1])
	unit := time.Second
	if found[2] == "ms" {
		unit = time.Millisecond
	}
	return time.Duration(value * float64(unit))
}

// exhausted: a usage limit is the account's, or that of a named limit, which is about some models only. A window that is
// spent in the same answer was rejected; with several, the last to reset governs. The rejection stands even if no window
// shows it.
func exhausted(f failure, resp sdk.Response) sdk.Verdict {
	active, windows := headerLimits(resp.Header, resp.ObservedAt)
	v := verdict(sdk.OutcomeQuotaExhausted, sdk.ScopeAccount, "usage_limit_reached")
	if active.named() {
		v.Scope = sdk.ScopeModel
	}
	v.ClearsAt = f.reset(resp.ObservedAt)
	for i, w := range windows {
		if !spent(w) || (w.Models != nil) != active.named() {
			continue
		}
		windows[i].State, windows[i].Source = sdk.StateExhausted, sdk.SourceRejection
		if v.WindowID == "" || w.ResetsAt.After(v.ClearsAt) {
			v.WindowID = w.ID
		}
		if w.ResetsAt.After(v.ClearsAt) {
			v.ClearsAt = w.ResetsAt
		}
	}
	if pause := sdk.RetryAfter(resp.Header, resp.ObservedAt); v.ClearsAt.IsZero() && pause > 0 {
		v.ClearsAt = resp.ObservedAt.Add(pause)
	}
	if !v.ClearsAt.After(resp.ObservedAt) {
		v.ClearsAt = time.Time{}
	}
	v.Windows = windows
	return v
}

func verdict(outcome sdk.Outcome, scope sdk.Scope, reason string) sdk.Verdict {
	return sdk.Verdict{Outcome: outcome, Scope: scope, Reason: reason}
}
