package claude

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// Classify reads a failed answer, or an error event of a stream. Headers win over the wording of a body.
func (*Adapter) Classify(_ context.Context, _ sdk.Account, resp sdk.Response) (sdk.Verdict, error) {
	f := readFailure(resp)
	l := readLimits(resp.Header, resp.ObservedAt)
	if resp.Event != nil {
		return classifyEvent(f, l, resp), nil
	}
	return classifyStatus(f, l, resp), nil
}

// failure is the error that a body or an event holds.
type failure struct {
	// typed: it had the provider's shape.
	typed   bool
	kind    string
	message string
}

func readFailure(resp sdk.Response) failure {
	data := resp.Body
	if resp.Event != nil {
		data = resp.Event.Data
	}
	var document struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	// A field of an unexpected type leaves the others readable.
	_ = json.Unmarshal(data, &document)
	return failure{typed: document.Error.Type != "", kind: document.Error.Type, message: document.Error.Message}
}

func classifyStatus(f failure, l limits, resp sdk.Response) sdk.Verdict {
	switch status := resp.Status; {
	case status == http.StatusTooManyRequests:
		return limited429(l, resp)
	case status == http.StatusUnauthorized:
		return verdict(sdk.OutcomeAuthFailed, sdk.ScopeAccount, "unauthorized")
	case status == http.StatusForbidden:
		return forbidden(f)
	case status == http.StatusBadRequest:
		return badRequest(f)
	case status == http.StatusRequestTimeout || status >= 500:
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "upstream_failure")
	case status >= 400:
		return verdict(sdk.OutcomeClientError, sdk.ScopeRequest, "client_error")
	}
	return verdict(sdk.OutcomeUnknownError, sdk.ScopeRequest, "unknown_error")
}

// classifyEvent reads an error inside a stream, whose status and headers were those of a success.
func classifyEvent(f failure, l limits, resp sdk.Response) sdk.Verdict {
	switch f.kind {
	case "rate_limit_error":
		return limitedEvent(f, l, resp)
	case "authentication_error":
		return verdict(sdk.OutcomeAuthFailed, sdk.ScopeAccount, "unauthorized")
	case "permission_error":
		return forbidden(f)
	case "invalid_request_error":
		return badRequest(f)
	case "not_found_error", "request_too_large", "billing_error":
		return verdict(sdk.OutcomeClientError, sdk.ScopeRequest, "client_error")
	case "overloaded_error", "api_error", "timeout_error":
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "upstream_failure")
	}
	return verdict(sdk.OutcomeUnknownError, sdk.ScopeRequest, "unknown_error")
}

// limited429: quota only if the limit headers say so. Without any limit header every account would give the same answer,
// unless it asks for a pause, which is about the account's throughput.
func limited429(l limits, resp sdk.Response) sdk.Verdict {
	retry := sdk.RetryAfter(resp.Header, resp.ObservedAt)
	if l.rejected || l.anyRejected() {
		return exhausted(l, retry)
	}
	if !l.present && resp.Header.Get("Retry-After") == "" && resp.Header.Get("Retry-After-Ms") == "" {
		return verdict(sdk.OutcomeThrottled, sdk.ScopeRequest, "rate_limited_request")
	}
	return throttled(l, retry)
}

// limitedEvent: the provider words an account's own limit so. A rate limit of any other wording is a throttle.
func limitedEvent(f failure, l limits, resp sdk.Response) sdk.Verdict {
	message := strings.ToLower(f.message)
	if l.rejected || l.anyRejected() || strings.Contains(message, "account's rate limit") || strings.Contains(message, "usage limit") {
		return exhausted(l, 0)
	}
	return throttled(l, sdk.RetryAfter(resp.Header, resp.ObservedAt))
}

func throttled(l limits, retry time.Duration) sdk.Verdict {
	v := verdict(sdk.OutcomeThrottled, sdk.ScopeAccount, "rate_limited")
	v.RetryAfter = retry
	v.Windows = l.windows(sdk.SourceRejection)
	return v
}

// exhausted names what was rejected: the account if one of its own windows was or if none was named, else a family of
// models. With several, the last to reset governs. A pause asked for with a family's rejection is shorter than its week
// and the better bound.
func exhausted(l limits, retry time.Duration) sdk.Verdict {
	v := verdict(sdk.OutcomeQuotaExhausted, sdk.ScopeAccount, "quota_exhausted")
	v.Windows = l.windows(sdk.SourceRejection)
	governing, named := l.governing()
	switch {
	case !named && l.rejected:
		v.ClearsAt = l.reset
	case !named:
		// The reset of an answer that was allowed is that of a window that has room.
	case governing.models != nil:
		v.Scope, v.WindowID, v.ClearsAt = sdk.ScopeModel, governing.id, governing.reset
		if retry > 0 {
			v.ClearsAt = l.observedAt.Add(retry)
		}
	default:
		v.WindowID, v.ClearsAt = governing.id, governing.reset
	}
	if v.ClearsAt.IsZero() && retry > 0 {
		v.ClearsAt = l.observedAt.Add(retry)
	}
	if !v.ClearsAt.After(l.observedAt) {
		v.ClearsAt = time.Time{}
	}
	return v
}

// governing is the rejected window that keeps the account away longest; the account's own come before a family's. A
// window without a reset counts as the latest: what is unknown is not sooner.
func (l limits) governing() (governing clock, named bool) {
	for _, c := range l.clocks {
		if !c.rejected {
			continue
		}
		if !named || outranks(c, governing) {
			governing, named = c, true
		}
	}
	return governing, named
}

func outranks(c, other clock) bool {
	if scoped := c.models != nil; scoped != (other.models != nil) {
		return !scoped
	}
	if c.reset.IsZero() || other.reset.IsZero() {
		return c.reset.IsZero() && !other.reset.IsZero()
	}
	return c.reset.After(other.reset)
}

// forbidden: a page that is not the provider's own comes from the edge in front of it and is about no account.
func forbidden(f failure) sdk.Verdict {
	message := strings.ToLower(f.message)
	switch {
	case !f.typed:
		return verdict(sdk.OutcomeOverloaded, sdk.ScopeProvider, "edge_refused")
	case strings.Contains(message, "token has been revoked") || strings.Contains(message, "token has expired"):
		return verdict(sdk.OutcomeAuthFailed, sdk.ScopeAccount, "token_revoked")
	case strings.Contains(message, "organization"):
		return verdict(sdk.OutcomeNotEntitled, sdk.ScopeAccount, "organization_not_allowed")
	}
	return verdict(sdk.OutcomeNotEntitled, sdk.ScopeModel, "not_allowed")
}

// badRequest: thinking is signed for the account that thought it, so another account refuses it after a switch.
func badRequest(f failure) sdk.Verdict {
	message := strings.ToLower(f.message)
	switch {
	case strings.Contains(message, "signature") && strings.Contains(message, "thinking"):
		return verdict(sdk.OutcomeContinuityLost, sdk.ScopeRequest, "thinking_signature_refused")
	case strings.Contains(message, "organization has been disabled"):
		return verdict(sdk.OutcomeNotEntitled, sdk.ScopeAccount, "organization_disabled")
	}
	return verdict(sdk.OutcomeClientError, sdk.ScopeRequest, "client_error")
}

func verdict(outcome sdk.Outcome, scope sdk.Scope, reason string) sdk.Verdict {
	return sdk.Verdict{Outcome: outcome, Scope: scope, Reason: reason}
}
