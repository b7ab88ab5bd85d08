package upstream

import (
	"net/http"
	"strconv"
	"time"
)

func codexError(kind, code, message string) any {
	return map[string]any{"error": map[string]any{"type": kind, "code": code, "message": message, "param": nil}}
}

// codexErrors are worded as recorded.
var codexErrors = errorDocuments{
	unauthorized: codexError("invalid_request_error", "token_expired", "Provided authentication token is expired. Please try signing in again."),
	forbidden:    codexError("invalid_request_error", "forbidden", "You do not have access to this resource."),
	overloaded:   codexError("service_unavailable_error", "server_is_overloaded", "Our servers are currently overloaded."),
	unavailable:  codexError("server_error", "server_error", "Service unavailable"),
	throttled:    codexError("tokens", "rate_limit_exceeded", "Rate limit reached. Please try again in 1.2s."),
}

var codexAccounts = map[string]any{
	"accounts": []any{map[string]any{
		"id": "acct_scripted", "plan_type": "plus", "name": nil, "structure": "personal",
		"workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT",
	}},
	"account_ordering": []any{"acct_scripted"}, "default_account_id": "acct_scripted",
}

// codex answers /responses.
func (a *answer) codex() {
	if a.r.Header.Get("Upgrade") != "" {
		a.status(http.StatusUpgradeRequired)
		a.w.WriteHeader(http.StatusUpgradeRequired)
		return
	}
	id := a.server.id()
	switch a.plan.kind {
	case kindQuota:
		a.codexWindows()
		resets := a.plan.resetsAt
		a.document(http.StatusTooManyRequests, map[string]any{"error": map[string]any{
			"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus",
			"resets_at": resets.Unix(), "resets_in_seconds": int64(resets.Sub(a.server.now()).Seconds()),
		}})
		return
	case kindEarlyError:
		a.stream()
		a.codexStart(id)
		a.codexQuotaEvent()
		return
	}
	if a.fail(codexErrors, http.StatusServiceUnavailable) {
		return
	}
	if a.usage.Known() {
		a.codexWindows()
	}
	a.codexStream(id)
}

func (a *answer) codexStream(id string) {
	a.stream()
	a.codexStart(id)
	if a.plan.telemetry {
		a.codexLimitsEvent()
	}
	a.event("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_%s","role":"assistant","status":"in_progress","content":[]}}`, id)
	for i, word := range words(a.plan.text) {
		a.event("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"msg_%s","output_index":0,"content_index":0,"delta":%s}`, id, quote(word))
		if i == 0 {
			a.halt()
		}
	}
	if a.plan.kind == kindLateError {
		a.codexQuotaEvent()
		return
	}
	a.event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_%s","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":%s}]}}`, id, quote(a.plan.text))
	a.event("response.completed", `{"type":"response.completed","response":{"id":"resp_%s","object":"response","model":%s,"status":"completed","usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":100},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":127}}}`, id, quote(a.asked.Model))
}

func (a *answer) codexStart(id string) {
	a.event("response.created", `{"type":"response.created","response":{"id":"resp_%s","object":"response","model":%s,"status":"in_progress"}}`, id, quote(a.asked.Model))
}

func (a *answer) codexQuotaEvent() {
	a.event("error", `{"type":"error","status":429,"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d}}`, a.plan.resetsAt.Unix())
}

func (a *answer) codexLimitsEvent() {
	five, week := a.codexClocks()
	a.event("codex.rate_limits", `{"type":"codex.rate_limits","plan_type":"plus","rate_limits":{"allowed":true,"limit_reached":false,"primary":{"used_percent":%d,"window_minutes":300,"reset_after_seconds":%d,"reset_at":%d},"secondary":{"used_percent":%d,"window_minutes":10080,"reset_after_seconds":%d,"reset_at":%d}},"code_review_rate_limits":null,"credits":null,"promo":null}`,
		five.used, five.after, five.at, week.used, week.after, week.at)
}

// codexClock is one window in whole percents and seconds.
type codexClock struct {
	used      int
	after, at int64
}

// codexClocks are the account's two windows; the plan's rejected one is full.
func (a *answer) codexClocks() (five, week codexClock) {
	now := a.server.now()
	clock := func(used float64, resetsAt time.Time) codexClock {
		return codexClock{used: int(used), after: int64(resetsAt.Sub(now).Seconds()), at: resetsAt.Unix()}
	}
	five = clock(a.usage.FiveHour, orIn(a.usage.FiveHourResetsAt, now, 2*time.Hour))
	week = clock(a.usage.Weekly, orIn(a.usage.WeeklyResets, now, 72*time.Hour))
	if a.plan.kind == kindQuota {
		if a.plan.window == "seven_day" {
			week = clock(100, a.plan.resetsAt)
		} else {
			five = clock(100, a.plan.resetsAt)
		}
	}
	return five, week
}

func (a *answer) codexWindows() {
	five, week := a.codexClocks()
	h := a.w.Header()
	set := func(slot string, minutes int, c codexClock) {
		h.Set("x-codex-"+slot+"-used-percent", strconv.Itoa(c.used))
		h.Set("x-codex-"+slot+"-window-minutes", strconv.Itoa(minutes))
		h.Set("x-codex-"+slot+"-reset-at", strconv.FormatInt(c.at, 10))
		h.Set("x-codex-"+slot+"-reset-after-seconds", strconv.FormatInt(c.after, 10))
	}
	h.Set("x-codex-active-limit", "codex")
	h.Set("x-codex-plan-type", "plus")
	set("primary", 300, five)
	set("secondary", 10080, week)
	h.Set("x-codex-credits-has-credits", "False")
	h.Set("x-codex-credits-unlimited", "False")
}

// codexUsage is the account backend's document.
func (a *answer) codexUsage() any {
	five, week := a.codexClocks()
	window := func(seconds int, c codexClock) any {
		return map[string]any{"used_percent": c.used, "limit_window_seconds": seconds, "reset_after_seconds": c.after, "reset_at": c.at}
	}
	full := five.used >= 100 || week.used >= 100
	return map[string]any{
		"user_id": "user_scripted", "account_id": "acct_scripted", "email": "dev@example.invalid", "plan_type": "plus",
		"rate_limit": map[string]any{
			"allowed": !full, "limit_reached": full,
			"primary_window": window(18000, five), "secondary_window": window(604800, week),
		},
		"code_review_rate_limit": nil, "additional_rate_limits": nil,
		"credits":       map[string]any{"has_credits": false, "unlimited": false, "balance": "0", "approx_local_messages": []int{0, 0}, "approx_cloud_messages": []int{0, 0}},
		"spend_control": map[string]any{"reached": false}, "rate_limit_reached_type": nil, "promo": nil,
	}
}
