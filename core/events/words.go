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
	ComponentAgent    Component = "agent"
	ComponentProxy    Component = "proxy"
	ComponentState    Component = "state"
	ComponentJournal  Component = "journal"
	ComponentPlugin   Component = "plugin"
	ComponentQuota    Component = "quota"
	ComponentDispatch Component = "dispatch"
	ComponentAPI      Component = "api"
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
	OperationStop            Operation = "stop"
	OperationReload          Operation = "reload"
	OperationRecover         Operation = "recover"
	OperationDegraded        Operation = "degraded"
	OperationSnapshot        Operation = "snapshot"
	OperationAdapter         Operation = "adapter"
	OperationAccountEnabled  Operation = "account_enabled"
	OperationAccountDisabled Operation = "account_disabled"
	OperationConnect         Operation = "connect"
	OperationDisconnect      Operation = "disconnect"
	OperationBlocked         Operation = "blocked"
	OperationUnblocked       Operation = "unblocked"
	OperationCooldown        Operation = "cooldown"
	OperationQuotaRead       Operation = "quota_read"
	OperationWindowStarted   Operation = "window_started"
	OperationWindowReset     Operation = "window_reset"
	OperationForgotten       Operation = "forgotten"
	OperationRoute           Operation = "route"
	OperationGate            Operation = "gate"
	OperationEscalate        Operation = "escalate"
)

func components(c Component) bool {
	switch c {
	case ComponentAgent, ComponentProxy, ComponentState, ComponentJournal, ComponentPlugin, ComponentQuota,
		ComponentDispatch, ComponentAPI:
		return true
	}
	return false
}

func operations(o Operation) bool {
	switch o {
	case OperationRequest, OperationAttempt, OperationFailover, OperationDetour, OperationBound, OperationMoved,
		OperationRefused, OperationUnavailable, OperationCut, OperationPassive,
		OperationStart, OperationReady, OperationDrain, OperationStop, OperationReload, OperationRecover,
		OperationDegraded, OperationSnapshot, OperationAdapter, OperationAccountEnabled, OperationAccountDisabled,
		OperationConnect, OperationDisconnect, OperationBlocked, OperationUnblocked, OperationCooldown,
		OperationQuotaRead, OperationWindowStarted, OperationWindowReset, OperationForgotten,
		OperationRoute, OperationGate, OperationEscalate:
		return true
	}
	return false
}

// states are those of adapters, of windows and of gates, and plain success and failure.
func states(s State) bool {
	switch s {
	case "ok", "failed",
		"disabled", "starting", "configuring", "ready", "draining", "backoff", "stopped",
		"fresh", "pending", "not_exposed", "awaiting_first_use", "stale", "rolled", "exhausted", "unknown",
		"go", "blocked", "refused":
		return true
	}
	return false
}

func routes(r Route) bool {
	switch r {
	case "turn", "placed", "aux", "local", "own", "unknown":
		return true
	}
	return false
}

// outcomes are those of the protocol in lower case, and the three ends that no adapter judges.
func outcomes(o Outcome) bool {
	switch o {
	case "accepted", "quota_exhausted", "auth_failed", "not_entitled", "throttled", "overloaded", "client_error",
		"continuity_lost", "unknown_error",
		"unavailable", "network", "canceled", "unjudged", "refused", "cut":
		return true
	}
	return false
}

// reasons are the host's own codes and those of the bundled adapters.
func reasons(r Reason) bool {
	switch r {
	// Requests that are refused before they are placed.
	case "host_not_allowed", "origin_not_allowed", "wrong_key", "unknown_path", "body_too_large", "body_unreadable",
		"too_many_connections", "upgrade_refused", "malformed_request":
		return true
	// How an account was chosen, and what dropped one.
	case "bound", "follow", "sibling", "known", "cautious", "disabled", "model", "blocked", "tried", "cooldown":
		return true
	// Causes.
	case "quota", "auth", "not_entitled", "throttle", "throttled", "overloaded", "network", "client_left", "timeout",
		"adapter_away", "credential", "lease_refused", "attempts_exhausted", "no_account", "no_eligible_account", "replay_memory",
		"unjudged", "stream_cut", "stream_error", "hold_time", "hold_bytes", "unknown_framing", "oversized_event",
		"unreadable_encoding", "empty_stream", "deadline":
		return true
	// Quota, by window and by source.
	case "usage_limit_reached", "usage_not_included", "insufficient_quota", "quota_exhausted", "rate_limit_exceeded",
		"rate_limited", "rate_limited_request", "five_hour", "seven_day", "overage", "overage_in_use", "window_full",
		"window_exhausted", "credits_exhausted", "spend_limit", "payment_required", "probe_failed", "read_failed",
		"reset_passed", "fresh_reading":
		return true
	// Sign-in and entitlement.
	case "signed_out", "expired", "token_expired", "token_revoked", "invalid_token", "not_eligible", "api_key",
		"unauthorized", "forbidden", "not_allowed", "permission_denied", "organization_disabled",
		"organization_not_allowed", "model_not_found", "model_not_supported", "temporary":
		return true
	// Requests and services.
	case "invalid_request", "client_error", "context_length_exceeded", "continuity_lost", "thinking_signature_refused",
		"server_error", "server_is_overloaded", "upstream_failure", "edge_refused", "model_at_capacity", "unknown_error",
		"event_unknown":
		return true
	// The daemon.
	case "signal", "operator", "config_changed", "config_invalid", "binary_changed", "disk_full", "disk_error",
		"journal_torn", "idle", "evicted":
		return true
	// Adapter processes.
	case "exited", "start_timeout", "exec_failed", "copy_failed", "not_found", "untrusted_file", "unpinned",
		"digest_mismatch", "handshake_malformed", "handshake_version", "handshake_network", "handshake_address",
		"handshake_protocol", "handshake_certificate", "connect_failed", "describe_failed", "init_failed",
		"identity_mismatch", "protocol_mismatch", "config_refused", "configure_failed", "profile_invalid", "health_lost",
		"crash_loop", "reattach_failed":
		return true
	// Dispatch.
	case "preferred", "alternate", "sufficient", "tier_unmet", "model_exhausted", "validation_failed",
		"risk_reassessed", "no_progress":
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
