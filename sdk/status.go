package sdk

import "net/http"

// VerdictByStatus reads a failed response by nothing but its status and Retry-After, for all that a provider's own
// errors say no more about: 401 refuses the account's credential, 429 asks the account for a pause, 500 and above are
// the provider's trouble, and the rest of the 400s, 403 aside, the client's. What is left is unknown. The host shows an
// adapter only headers that its profile exposes: list retry-after in [Exposure.ResponseHeaders], or the pause is unknown.
func VerdictByStatus(resp Response) Verdict {
	switch {
	case resp.Status == http.StatusUnauthorized:
		return Verdict{Outcome: OutcomeAuthFailed, Scope: ScopeAccount, Reason: "unauthorized"}
	case resp.Status == http.StatusTooManyRequests:
		return Verdict{Outcome: OutcomeThrottled, Scope: ScopeAccount, Reason: "too_many_requests",
			RetryAfter: RetryAfter(resp.Header, resp.ObservedAt)}
	case resp.Status >= 500 && resp.Status <= 599:
		return Verdict{Outcome: OutcomeOverloaded, Scope: ScopeProvider, Reason: "server_error"}
	case resp.Status >= 400 && resp.Status <= 499 && resp.Status != http.StatusForbidden:
		return Verdict{Outcome: OutcomeClientError, Scope: ScopeRequest, Reason: "client_error"}
	}
	return Verdict{Outcome: OutcomeUnknownError, Scope: ScopeRequest, Reason: "unknown"}
}
