package simulated

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// Headers with which the upstream tells its windows: X-Simulated-Quota-5h-Used and so on.
const (
	quotaHeaders     = "X-Simulated-Quota-"
	headerRejectedBy = quotaHeaders + "Rejected-By"
)

// writeQuota tells the windows in headers.
func writeQuota(header http.Header, clocks []clock) {
	for _, c := range clocks {
		prefix := quotaHeaders + c.id
		header.Set(prefix+"-Used", strconv.FormatFloat(c.used, 'f', 2, 64))
		header.Set(prefix+"-Length", strconv.Itoa(int(c.length.Seconds())))
		if !c.resetsAt.IsZero() {
			header.Set(prefix+"-Reset", c.resetsAt.UTC().Format(time.RFC3339Nano))
		}
	}
}

// readQuota is the inverse of writeQuota. A window whose headers are missing or not what they should be is left out.
func readQuota(header http.Header, observedAt time.Time) []sdk.Window {
	kinds := map[string]sdk.WindowKind{windowFiveHour: sdk.WindowRolling, windowWeekly: sdk.WindowWeekly}
	var windows []sdk.Window
	for _, id := range []string{windowFiveHour, windowWeekly} {
		prefix := quotaHeaders + id
		used := sdk.ParsePercent(header.Get(prefix + "-Used"))
		if used == nil {
			continue
		}
		seconds, err := strconv.Atoi(header.Get(prefix + "-Length"))
		if err != nil || seconds <= 0 {
			continue
		}
		c := clock{id: id, kind: kinds[id], length: time.Duration(seconds) * time.Second, used: *used}
		if text := header.Get(prefix + "-Reset"); text != "" {
			if c.resetsAt, err = time.Parse(time.RFC3339Nano, text); err != nil {
				continue
			}
		}
		windows = append(windows, c.window(sdk.SourceResponseHeader, observedAt))
	}
	return windows
}

// Observe reads the windows from the headers of answers.
func (a *adapter) Observe(_ context.Context, _ sdk.Account, seen sdk.Observation) ([]sdk.Window, error) {
	return readQuota(seen.Header, seen.ObservedAt), nil
}

// failure is the upstream's error, as a body and as an event.
type failure struct {
	Type  string `json:"type"`
	Error struct {
		Code     string    `json:"code"`
		Window   string    `json:"window,omitempty"`
		ResetsAt time.Time `json:"resets_at,omitzero"`
	} `json:"error"`
}

// Classify reads the code of the upstream's error, and the status where there is none.
func (a *adapter) Classify(_ context.Context, _ sdk.Account, resp sdk.Response) (sdk.Verdict, error) {
	text := resp.Body
	if resp.Event != nil {
		text = resp.Event.Data
	}
	var told failure
	if err := json.Unmarshal(text, &told); err != nil {
		told = failure{} // the status alone speaks
	}
	switch {
	case told.Error.Code == "quota_exhausted":
		return sdk.Verdict{
			Outcome: sdk.OutcomeQuotaExhausted, Scope: sdk.ScopeAccount, Reason: "window_full",
			WindowID: told.Error.Window, ClearsAt: told.Error.ResetsAt, Windows: readQuota(resp.Header, resp.ObservedAt),
		}, nil
	case resp.Status == http.StatusUnauthorized, resp.Status == http.StatusForbidden:
		return sdk.Verdict{Outcome: sdk.OutcomeAuthFailed, Scope: sdk.ScopeAccount, Reason: "invalid_token"}, nil
	case resp.Status == http.StatusTooManyRequests:
		return sdk.Verdict{Outcome: sdk.OutcomeThrottled, Scope: sdk.ScopeAccount, Reason: "rate_limited"}, nil
	case resp.Status >= 500:
		return sdk.Verdict{Outcome: sdk.OutcomeOverloaded, Scope: sdk.ScopeProvider, Reason: "server_error"}, nil
	case resp.Status >= 400 && resp.Event == nil:
		return sdk.Verdict{Outcome: sdk.OutcomeClientError, Scope: sdk.ScopeRequest, Reason: "invalid_request"}, nil
	}
	return sdk.Verdict{Outcome: sdk.OutcomeUnknownError, Scope: sdk.ScopeRequest, Reason: "unknown_error"}, nil
}
