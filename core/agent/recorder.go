package agent

import (
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/proxy"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

const eventsKept = 10_000

// recorder takes what happened into the list of events and the metrics. It is safe for concurrent use.
type recorder struct {
	list    *events.List
	metrics *events.Metrics
}

// newRecorder keeps events from now on; present is read at every scrape of the metrics.
func newRecorder(version string, present func() events.Present, logger hclog.Logger) *recorder {
	errors := logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn})
	return &recorder{list: events.NewList(eventsKept), metrics: events.NewMetrics(version, present, errors)}
}

// Record takes an event of the proxy.
func (r *recorder) Record(e proxy.Event) {
	r.add(events.Event{
		At: e.At, Component: events.ComponentProxy, Operation: events.Operation(e.Operation),
		RequestID: e.RequestID, Attempt: e.Attempt, SessionHash: e.SessionHash,
		Provider: e.Provider, Account: e.Account, From: e.From, Model: e.Model,
		Route: routeWord(e.RouteKind), Status: e.Status, Outcome: events.Outcome(e.Outcome), Reason: events.Reason(e.Reason),
		Duration: e.Duration, FirstByte: e.FirstByte, Overhead: e.Overhead,
		BytesUp: e.BytesUp, BytesDown: e.BytesDown,
	})
}

// add takes an event of any part of the daemon.
func (r *recorder) add(e events.Event) { r.metrics.Record(r.list.Record(e)) }

// routeWord is a kind of route as events name it; a request that was refused before has none.
func routeWord(kind providerv1.RouteKind) events.Route {
	if kind == providerv1.RouteKind_ROUTE_KIND_UNSPECIFIED {
		return ""
	}
	return events.Route(strings.ToLower(strings.TrimPrefix(kind.String(), "ROUTE_KIND_")))
}
