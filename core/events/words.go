package events

// Words of events. Each list is all there is: [Event.Sanitized] replaces any other word by unlisted. Only the reason of a
// verdict is the adapter's own word.
type (
	// Component that recorded the event.
	Component string
	// Operation that happened.
	Operation string
	// State that it led to.
	State string
	// Route is the kind of a request's route.
	Route string
	// Outcome of a request or an attempt.
	Outcome string
	// Reason why, as a code.
	Reason string
)

const unlisted = "unlisted"

// Components.
const (
	ComponentAgent  Component = "agent"
	ComponentProxy  Component = "proxy"
	ComponentPlugin Component = "plugin"
	ComponentAPI    Component = "api"
)

// Operations on requests.
const (
	OperationRequest     Operation = "request"
	OperationAttempt     Operation = "attempt"
	OperationFailover    Operation = "failover"
	OperationDetour      Operation = "detour"
	OperationBound       Operation = "bound"
	OperationMoved       Operation = "moved"
	OperationRefused     Operation = "refused"
	OperationUnavailable Operation = "unavailable"
	OperationCut         Operation = "cut"
	OperationPassive     Operation = "passive"
)

// Operations on the daemon, accounts and adapters.
const (
	OperationStart           Operation = "start"
	OperationReady           Operation = "ready"
	OperationDrain           Operation = "drain"
	OperationReload          Operation = "reload"
	OperationAdapter         Operation = "adapter"
	OperationAccountEnabled  Operation = "account_enabled"
	OperationAccountDisabled Operation = "account_disabled"
	OperationConnect         Operation = "connect"
	OperationForgotten       Operation = "forgotten"
)

func components(c Component) bool {
	switch c {
	case ComponentAgent, ComponentProxy, ComponentPlugin, ComponentAPI:
		return true
	}
	return false
}

func operations(o Operation) bool {
	switch o {
	case OperationRequest, OperationAttempt, OperationFailover, OperationDetour, OperationBound, OperationMoved,
		OperationRefused, OperationUnavailable, OperationCut, OperationPassive,
		OperationStart, OperationReady, OperationDrain, OperationReload, OperationAdapter,
		OperationAccountEnabled, OperationAccountDisabled, OperationConnect, OperationForgotten:
		return true
	}
	return false
}

// states are those of adapters.
func states(s State) bool {
	switch s {
	case "disabled", "starting", "configuring", "ready", "draining", "backoff", "failed", "stopped":
		return true
	}
	return false
}

// routes are the kinds of the protocol.
func routes(r Route) bool {
	switch r {
	case "turn", "placed", "aux", "local", "own":
		return true
	}
	return false
}

// outcomes are those of the protocol, and the ends that no adapter judges.
func outcomes(o Outcome) bool {
	switch o {
	case "accepted", "quota_exhausted", "auth_failed", "not_entitled", "throttled", "overloaded", "client_error",
		"continuity_lost", "unknown_error",
		"unavailable", "network", "canceled", "unjudged", "refused", "cut":
		return true
	}
	return false
}

// reasons are the host's own codes, and those of the SDK, of the bundled adapters and of the example.
func reasons(r Reason) bool {
	switch r {
	// Requests that are refused before they are placed.
	case "host_not_allowed", "origin_not_allowed", "wrong_key", "unknown_path", "body_too_large", "body_unreadable",
		"upgrade_refused", "malformed_request":
		return true
	// How an account was chosen.
	case "bound", "follow", "sibling", "known", "cautious", "cooldown", "operator":
		return true
	// What became of a request.
	case "network", "client_left", "timeout", "adapter_away", "attempts_exhausted", "no_account", "no_eligible_account",
		"replay_memory", "unjudged", "stream_cut", "hold_time", "hold_bytes", "unknown_framing", "oversized_event",
		"unreadable_encoding", "empty_stream":
		return true
	// Why there is no credential for an account.
	case "credential", "signed_out", "expired", "not_eligible":
		return true
	// Quota and throttles.
	case "quota", "quota_exhausted", "usage_limit_reached", "window_full", "rate_limited", "rate_limited_request",
		"too_many_requests":
		return true
	// Sign-in and entitlement.
	case "unauthorized", "invalid_token", "invalid_api_key", "token_expired", "token_invalidated", "token_revoked",
		"permission_denied", "forbidden", "not_allowed", "organization_disabled", "organization_not_allowed",
		"account_deactivated", "deactivated_workspace", "payment_required", "insufficient_quota", "usage_not_included",
		"model_not_supported":
		return true
	// Requests and services.
	case "client_error", "previous_response_not_found", "invalid_encrypted_content", "thinking_signature_refused",
		"server_error", "upstream_failure", "edge_refused", "model_at_capacity", "unknown_error", "unknown", "unspecified":
		return true
	// Adapter processes.
	case "exited", "start_timeout", "exec_failed", "copy_failed", "not_found", "untrusted_file", "unpinned",
		"digest_mismatch", "handshake_malformed", "handshake_version", "handshake_network", "handshake_address",
		"handshake_protocol", "handshake_certificate", "connect_failed", "describe_failed", "init_failed",
		"identity_mismatch", "protocol_mismatch", "signer_unsupported", "config_refused", "configure_failed", "profile_invalid", "health_lost",
		"crash_loop", "reattach_failed":
		return true
	}
	return false
}

// verdicts are told by operations whose reason an adapter gave.
func verdicts(o Operation) bool {
	switch o {
	case OperationAttempt, OperationFailover, OperationDetour:
		return true
	}
	return false
}

const maxCode = 64

// verdictReason passes an adapter's code as the protocol has it: one word in snake_case, in which nothing can be hidden.
func verdictReason(r Reason) Reason {
	switch {
	case r == "" || reasons(r):
		return r
	case len(r) > maxCode || r[0] < 'a' || r[0] > 'z':
		return unlisted
	case secretShaped(string(r)) || longestRun(string(r)) >= minRun:
		return Redacted
	}
	for i := range len(r) {
		if c := r[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return unlisted
		}
	}
	return r
}

func listed[W ~string](word W, known func(W) bool) W {
	if word == "" || known(word) {
		return word
	}
	return unlisted
}
