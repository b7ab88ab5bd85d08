package events

import (
	"io"
	"log"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(answer.Result().Body)
	if err != nil || answer.Code != 200 {
		t.Fatalf("status %d, error %v: %s", answer.Code, err, body)
	}
	return string(body)
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

func TestMetricsCountEvents(t *testing.T) {
	m := NewMetrics("1.2.3", nil, nil)
	m.Record(Event{Operation: OperationRequest, Provider: "claude", Account: "work", Route: "turn", Outcome: "accepted",
		FirstByte: 300 * time.Millisecond, Overhead: 200 * time.Microsecond, BytesUp: 10, BytesDown: 2000, SessionHash: "5e55"})
	m.Record(Event{Operation: OperationAttempt, Provider: "claude", Account: "work", Outcome: "quota_exhausted"})
	m.Record(Event{Operation: OperationFailover, Provider: "claude", Account: "home", Reason: "window_full"})
	m.Record(Event{Operation: OperationFailover, Provider: "acme", Account: "b", Reason: "monthly_pages_used_up"})
	m.Record(Event{Operation: OperationMoved, Provider: "claude", Account: "home", Reason: "quota"})
	m.Record(Event{Operation: OperationDetour, Provider: "claude", Account: "home"})
	m.Record(Event{Operation: OperationReload})
	m.ObserveJournalSync(2 * time.Millisecond)

	text := scrape(t, m)
	wantLines(t, text,
		`noria_build_info{version="1.2.3"} 1`,
		`noria_requests_total{account="work",outcome="accepted",provider="claude",route="turn"} 1`,
		`noria_attempts_total{account="work",outcome="quota_exhausted",provider="claude"} 1`,
		`noria_failovers_total{account="home",provider="claude",reason="window_full"} 1`,
		`noria_failovers_total{account="b",provider="acme",reason="unlisted"} 1`,
		`noria_moves_total{account="home",provider="claude",reason="quota"} 1`,
		`noria_detours_total{account="home",provider="claude"} 1`,
		`noria_body_bytes_total{direction="down",provider="claude"} 2000`,
		`noria_first_byte_seconds_count{provider="claude",route="turn"} 1`,
		`noria_overhead_seconds_bucket{provider="claude",route="turn",le="0.00025"} 1`,
		`noria_journal_sync_seconds_count 1`,
	)
	if strings.Contains(text, "5e55") {
		t.Error("a session is in a label")
	}
}

func TestMetricsShowThePresent(t *testing.T) {
	m := NewMetrics("1", func() Present {
		return Present{
			StreamsOpen: map[string]int{"codex": 2},
			Bindings:    7,
			Accounts: []PresentAccount{{
				Provider: "codex", Account: "main", Enabled: true, Reservations: 3, Blockers: map[string]int{"quota": 1},
				Windows: []PresentWindow{
					{ID: "5h", UsedPercent: 41.5, ResetsAt: time.Unix(1800000000, 0)},
					{ID: "weekly", UsedPercent: 9},
					{ID: "broken", UsedPercent: math.NaN()},
				},
			}},
			Adapters: []PresentAdapter{{Name: "codex", Restarts: 4, Unchecked: true}},
		}
	}, nil)
	text := scrape(t, m)
	wantLines(t, text,
		`noria_streams_open{provider="codex"} 2`,
		`noria_bindings 7`,
		`noria_journal_degraded 0`,
		`noria_account_enabled{account="main",provider="codex"} 1`,
		`noria_reservations{account="main",provider="codex"} 3`,
		`noria_blockers{account="main",cause="quota",provider="codex"} 1`,
		`noria_window_used_percent{account="main",provider="codex",window="5h"} 41.5`,
		`noria_window_reset_timestamp_seconds{account="main",provider="codex",window="5h"} 1.8e+09`,
		`noria_adapter_ready{adapter="codex"} 0`,
		`noria_adapter_restarts_total{adapter="codex"} 4`,
		`noria_adapter_unchecked{adapter="codex"} 1`,
	)
	if strings.Contains(text, "broken") || strings.Contains(text, `noria_window_reset_timestamp_seconds{account="main",provider="codex",window="weekly"`) {
		t.Error("an unknown value is shown")
	}
}

// long is a name that could be a credential.
func long(s string) string { return strings.Repeat(s, minRun) }

func TestNamesThatMayNotBeShownHideNoMetrics(t *testing.T) {
	windows := []PresentWindow{{ID: long("x"), UsedPercent: 1}, {ID: "5h", UsedPercent: 2}, {ID: long("y"), UsedPercent: 3}}
	m := NewMetrics("1", func() Present {
		return Present{
			StreamsOpen: map[string]int{long("p"): 1, long("q"): 2, "claude": 3},
			Accounts: []PresentAccount{
				{Provider: long("q"), Account: long("a"), Reservations: 4, Windows: windows},
				{Provider: long("q"), Account: long("b"), Reservations: 5, Windows: windows},
				{Provider: long("p"), Account: long("a"), Reservations: 6},
			},
			Adapters: []PresentAdapter{{Name: long("q"), Restarts: 7}, {Name: long("p"), Restarts: 8}},
		}
	}, nil)
	wantLines(t, scrape(t, m),
		`noria_streams_open{provider="[redacted]"} 2`,
		`noria_streams_open{provider="[redacted] 2"} 1`,
		`noria_streams_open{provider="claude"} 3`,
		`noria_reservations{account="[redacted]",provider="[redacted]"} 4`,
		`noria_reservations{account="[redacted] 2",provider="[redacted]"} 5`,
		`noria_reservations{account="[redacted]",provider="[redacted] 2"} 6`,
		`noria_window_used_percent{account="[redacted] 2",provider="[redacted]",window="[redacted]"} 1`,
		`noria_window_used_percent{account="[redacted] 2",provider="[redacted]",window="5h"} 2`,
		`noria_window_used_percent{account="[redacted] 2",provider="[redacted]",window="[redacted] 2"} 3`,
		`noria_adapter_restarts_total{adapter="[redacted]"} 7`,
		`noria_adapter_restarts_total{adapter="[redacted] 2"} 8`,
	)
}

func TestWhatIsThereTwiceHidesNoOtherMetrics(t *testing.T) {
	var told strings.Builder
	window := PresentWindow{ID: "5h", UsedPercent: 1}
	m := NewMetrics("1", func() Present {
		return Present{Bindings: 7, Accounts: []PresentAccount{
			{Provider: "p", Account: "a", Windows: []PresentWindow{window, window}},
			{Provider: "p", Account: "b", Windows: []PresentWindow{window}},
		}}
	}, log.New(&told, "", 0))
	wantLines(t, scrape(t, m),
		`noria_bindings 7`,
		`noria_window_used_percent{account="a",provider="p",window="5h"} 1`,
		`noria_window_used_percent{account="b",provider="p",window="5h"} 1`,
	)
	if !strings.Contains(told.String(), "noria_window_used_percent") {
		t.Errorf("told %q", told.String())
	}
}

func TestMetricsOfTwoDaemonsShareNothing(t *testing.T) {
	one, other := NewMetrics("1", nil, nil), NewMetrics("1", nil, nil)
	one.Record(Event{Operation: OperationDetour, Provider: "p", Account: "a"})
	if strings.Contains(scrape(t, other), "noria_detours_total") {
		t.Error("one daemon's detour is counted by the other")
	}
}
