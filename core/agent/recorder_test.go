package agent

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/proxy"
)

func TestRecorderKeepsTextOutOfEventsAndMetrics(t *testing.T) {
	for _, text := range []string{"sk-ant-oat01-abcdefghijkl", "write me a poem", "not\xffUTF-8", strings.Repeat("x", 200)} {
		r := newRecorder("1", func() events.Present { return events.Present{} }, hclog.NewNullLogger())
		for _, operation := range []string{"request", "attempt", "failover", "detour", "moved", text} {
			r.Record(proxy.Event{
				Operation: operation, RequestID: text, SessionHash: text, Provider: text, Account: text, From: text, Model: text,
				Outcome: text, Reason: text, FirstByte: 1, Overhead: 1, BytesUp: -1, BytesDown: -1,
			})
		}
		answer := httptest.NewRecorder()
		r.metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		list, err := json.Marshal(r.list.Recent(eventsKept, nil))
		if err != nil || answer.Code != http.StatusOK {
			t.Fatalf("status %d, error %v: %s", answer.Code, err, answer.Body)
		}
		for name, shown := range map[string]string{"events": string(list), "metrics": answer.Body.String()} {
			if strings.Contains(shown, text) {
				t.Errorf("%q is in the %s", text, name)
			}
		}
	}
}

func TestARequestRefusedBeforeItsRouteIsKnownHasNone(t *testing.T) {
	r := newRecorder("1", nil, hclog.NewNullLogger())
	r.Record(proxy.Event{Operation: "refused", Outcome: "refused", Reason: "unknown_path"})
	if got := r.list.Recent(1, nil)[0]; got.Route != "" || got.Reason != "unknown_path" {
		t.Errorf("route %q, reason %q", got.Route, got.Reason)
	}
}

func TestAFollowerIsToldHowManyEventsItMissed(t *testing.T) {
	d := &daemon{&Agent{recorder: &recorder{list: events.NewList(2)}}}
	for range 5 {
		d.recorder.list.Record(events.Event{Operation: events.OperationReload})
	}
	enough := errors.New("enough")
	var sequences, missed []uint64
	err := d.WatchEvents(t.Context(), 1, func(e api.FollowedEvent) error {
		sequences, missed = append(sequences, e.Sequence), append(missed, e.Missed)
		if len(sequences) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || !slices.Equal(sequences, []uint64{4, 5}) || !slices.Equal(missed, []uint64{2, 0}) {
		t.Errorf("events %v after %v missed, error %v", sequences, missed, err)
	}
}
