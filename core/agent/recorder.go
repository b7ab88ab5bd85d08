package agent

import (
	"strings"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/proxy"
)

const eventsKept = 10_000

// recorder takes what happened into the list of events and the metrics. It is safe for concurrent use.
type recorder struct {
	list    *events.List
	metrics *events.Metrics
}

func newRecorder(metrics *events.Metrics) *recorder {
	return &recorder{list: events.NewList(eventsKept), metrics: metrics}
}

// Record takes an event of the proxy.
func (r *recorder) Record(e proxy.Event) {
	r.add(events.Event{
		At: e.At, Component: events.ComponentProxy, Operation: events.Operation(e.Operation),
		RequestID: e.RequestID, Attempt: e.Attempt, SessionHash: e.SessionHash,
		Provider: e.Provider, Account: e.Account, From: e.From, Model: e.Model,
		Route:  events.Route(strings.ToLower(strings.TrimPrefix(e.RouteKind.String(), "ROUTE_KIND_"))),
		Status: e.Status, Outcome: events.Outcome(e.Outcome), Reason: events.Reason(e.Reason),
		Duration: e.Duration, FirstByte: e.FirstByte, Overhead: e.Overhead,
		BytesUp: e.BytesUp, BytesDown: e.BytesDown,
	})
}

// add takes an event of any part of the daemon.
func (r *recorder) add(e events.Event) { r.metrics.Record(r.list.Record(e)) }
