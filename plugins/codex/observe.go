package codex

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// eventRateLimits carries limits inside a stream. The client itself heeds it on a WebSocket only.
const eventRateLimits = "codex.rate_limits"

// Observe reads windows from the headers and the limit events of answers.
//
// A window that is spent on an answer that succeeded, of an account that has credits, is being served from them: it is
// exhausted, for what comes next.
func (*Adapter) Observe(_ context.Context, _ sdk.Account, obs sdk.Observation) ([]sdk.Window, error) {
	_, windows := headerLimits(obs.Header, obs.ObservedAt)
	if sdk.OneValue(obs.Header, "x-codex-rate-limit-reached-type") != "" ||
		strings.EqualFold(sdk.OneValue(obs.Header, "x-codex-credits-has-credits"), "true") {
		exhaust(windows)
	}
	for _, event := range obs.Events {
		if event.Type == eventRateLimits {
			windows = supersede(windows, eventWindows(event.Data, obs.ObservedAt))
		}
	}
	return windows, nil
}

// supersede puts the later word on a window in place of the earlier one. What is exhausted once stays so: neither source
// takes back what the other said was reached.
func supersede(windows, later []sdk.Window) []sdk.Window {
	for _, w := range later {
		at := slices.IndexFunc(windows, func(other sdk.Window) bool { return other.ID == w.ID })
		switch {
		case at < 0 && len(windows) < maxWindows:
			windows = append(windows, w)
		case at >= 0 && windows[at].State != sdk.StateExhausted:
			windows[at] = w
		}
	}
	return windows
}

type eventSlot struct {
	UsedPercent       json.RawMessage `json:"used_percent"`
	WindowMinutes     json.RawMessage `json:"window_minutes"`
	ResetAt           json.RawMessage `json:"reset_at"`
	ResetsAt          json.RawMessage `json:"resets_at"`
	ResetAfterSeconds json.RawMessage `json:"reset_after_seconds"`
}

func eventWindows(data []byte, observedAt time.Time) []sdk.Window {
	var event struct {
		LimitID    string `json:"limit_id"`
		LimitName  string `json:"limit_name"`
		RateLimits struct {
			LimitReached bool       `json:"limit_reached"`
			Primary      *eventSlot `json:"primary"`
			Secondary    *eventSlot `json:"secondary"`
		} `json:"rate_limits"`
	}
	if json.Unmarshal(data, &event) != nil {
		return nil
	}
	l := newLimit(event.LimitID, event.LimitName)
	var windows []sdk.Window
	for _, slot := range []*eventSlot{event.RateLimits.Primary, event.RateLimits.Secondary} {
		if slot == nil {
			continue
		}
		if w, ok := slot.figures(observedAt).window(l, observedAt); ok {
			w.Source = sdk.SourceResponseEvent
			windows = append(windows, w)
		}
	}
	if event.RateLimits.LimitReached {
		exhaust(windows)
	}
	return windows
}

func (s eventSlot) figures(observedAt time.Time) figures {
	f := figures{told: given(s.UsedPercent), used: percentOf(s.UsedPercent), minutes: wholeOf(s.WindowMinutes), reset: unixOf(s.ResetAt)}
	if f.reset.IsZero() {
		f.reset = unixOf(s.ResetsAt)
	}
	if seconds := wholeOf(s.ResetAfterSeconds); f.reset.IsZero() && seconds > 0 {
		f.reset = observedAt.Add(time.Duration(seconds) * time.Second)
	}
	return f
}

// sortedNames gives the names of headers in lower case.
func sortedNames(header http.Header) []string {
	names := slices.Collect(maps.Keys(header))
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	slices.Sort(names)
	return names
}
