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

// readQuota is the inverse of writeQuota. A window is left out without its used part or length, and its reset when that
// is not one of such a window.
func readQuota(header http.Header, observedAt time.Time) []sdk.Window {
	kinds := map[string]sdk.WindowKind{windowFiveHour: sdk.WindowRolling, windowWeekly: sdk.WindowWeekly}
	var windows []sdk.Window
	for _, id := range []string{windowFiveHour, windowWeekly} {
		prefix := quotaHeaders + id
		used := sdk.ParsePercent(header.Get(prefix + "-Used"))
		seconds, err := strconv.ParseUint(header.Get(prefix+"-Length"), 10, 31)
		if used == nil || err != nil || seconds == 0 {
			continue
		}
		w := sdk.Window{
			ID: id, Kind: kinds[id], Length: time.Duration(seconds) * time.Second, UsedPercent: used,
			State: sdk.StateObserved, Source: sdk.SourceResponseHeader, ObservedAt: observedAt,
		}
		switch reset := header.Get(prefix + "-Reset"); {
		case reset != "":
			if at, err := time.Parse(time.RFC3339Nano, reset); err == nil {
				w.ResetsAt = sdk.ResetWithin(at, observedAt, w.Length)
			}
		case *used == 0:
			w.State = sdk.StateAwaitingFirstUse
		}
		if *used >= 100 {
			w.State = sdk.StateExhausted
		}
		windows = append(windows, w)
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
	case resp.Event != nil:
		return sdk.Verdict{Outcome: sdk.OutcomeUnknownError, Scope: sdk.ScopeRequest, Reason: "unknown_error"}, nil
	}
	return sdk.VerdictByStatus(resp), nil
}
