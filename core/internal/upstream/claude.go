package upstream

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

func claudeError(kind, message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
}

const claudeQuotaMessage = "This request would exceed your account's rate limit. Please try again later."

// claudeErrors are worded as recorded.
var claudeErrors = errorDocuments{
	unauthorized: claudeError("authentication_error", "Invalid bearer token"),
	forbidden:    claudeError("permission_error", "OAuth token has been revoked. Please obtain a new token."),
	overloaded:   claudeError("overloaded_error", "Overloaded"),
	unavailable:  claudeError("api_error", "Service unavailable"),
	throttled:    claudeError("rate_limit_error", "Number of concurrent connections has exceeded your rate limit. Please try again later."),
}

var claudeModels = map[string]any{
	"data": []any{map[string]any{
		"type": "model", "id": "claude-sonnet-5-5", "display_name": "Sonnet", "created_at": "2026-01-01T00:00:00Z",
	}},
	"has_more": false, "first_id": "claude-sonnet-5-5", "last_id": "claude-sonnet-5-5",
}

// claude answers /v1/messages.
func (a *answer) claude() {
	id := a.server.id()
	a.w.Header().Set("request-id", "req_"+id)
	switch a.plan.kind {
	case kindQuota:
		a.claudeWindows("rejected")
		a.document(http.StatusTooManyRequests, claudeError("rate_limit_error", claudeQuotaMessage))
		return
	case kindEarlyError:
		a.claudeWindows("allowed")
		a.stream()
		a.claudeStart(id)
		a.claudeQuotaEvent()
		return
	}
	if a.fail(claudeErrors, 529) {
		return
	}
	a.claudeWindows("allowed")
	text := a.plan.text
	if a.asked.OutputConfig.Format.Type == "json_schema" {
		text = `{"title":"Scripted title"}`
	}
	if !a.asked.Stream {
		a.document(http.StatusOK, a.claudeMessage(id, text))
		return
	}
	a.claudeStream(id, text)
}

func (a *answer) claudeStream(id, text string) {
	a.stream()
	a.claudeStart(id)
	a.event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	a.event("ping", `{"type":"ping"}`)
	for i, word := range words(text) {
		a.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quote(word))
		if i == 0 {
			a.halt()
		}
	}
	if a.plan.kind == kindLateError {
		a.claudeQuotaEvent()
		return
	}
	a.event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	a.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
	a.event("message_stop", `{"type":"message_stop"}`)
}

func (a *answer) claudeStart(id string) {
	a.event("message_start", `{"type":"message_start","message":{"model":%s,"id":"msg_%s","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`, quote(a.asked.Model), id)
}

func (a *answer) claudeQuotaEvent() {
	a.event("error", `{"type":"error","error":{"type":"rate_limit_error","message":%s}}`, quote(claudeQuotaMessage))
}

func (a *answer) claudeMessage(id, text string) any {
	return map[string]any{
		"model": a.asked.Model, "id": "msg_" + id, "type": "message", "role": "assistant",
		"content":     []any{map[string]any{"type": "text", "text": text}},
		"stop_reason": "end_turn", "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5},
	}
}

// claudeWindows sets the headers of the account's windows; of a rejection also without known usage.
func (a *answer) claudeWindows(status string) {
	u, rejected := a.usage, status == "rejected"
	if !u.Known() && !rejected {
		return
	}
	now := a.server.now()
	five := claudeWindow{used: u.FiveHour, resetsAt: orIn(u.FiveHourResetsAt, now, 2*time.Hour), status: "allowed"}
	week := claudeWindow{used: u.Weekly, resetsAt: orIn(u.WeeklyResets, now, 72*time.Hour), status: "allowed"}
	claim, resetsAt := "five_hour", five.resetsAt
	if rejected {
		claim, resetsAt = a.plan.window, a.plan.resetsAt
		switch claim {
		case "five_hour":
			five = claudeWindow{used: 100, resetsAt: resetsAt, status: status}
		case "seven_day":
			week = claudeWindow{used: 100, resetsAt: resetsAt, status: status}
		}
	}
	h := a.w.Header()
	const prefix = "anthropic-ratelimit-unified"
	h.Set(prefix+"-status", status)
	five.set(h, prefix+"-5h")
	week.set(h, prefix+"-7d")
	h.Set(prefix+"-representative-claim", claim)
	h.Set(prefix+"-reset", strconv.FormatInt(resetsAt.Unix(), 10))
}

type claudeWindow struct {
	used     float64
	resetsAt time.Time
	status   string
}

func (w claudeWindow) set(h http.Header, prefix string) {
	h.Set(prefix+"-status", w.status)
	h.Set(prefix+"-reset", strconv.FormatInt(w.resetsAt.Unix(), 10))
	h.Set(prefix+"-utilization", fmt.Sprintf("%.2f", w.used/100))
}

// orIn is t, or d from now when t is not known.
func orIn(t, now time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return now.Add(d)
	}
	return t
}
