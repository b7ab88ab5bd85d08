package events

import (
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts what happened, in a registry of its own, and reads the present state of things when it is scraped. No
// label carries a session or anything else that a client chose. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	errors   *log.Logger

	requests       *prometheus.CounterVec
	attempts       *prometheus.CounterVec
	failovers      *prometheus.CounterVec
	detours        *prometheus.CounterVec
	moves          *prometheus.CounterVec
	bytes          *prometheus.CounterVec
	firstByte      *prometheus.HistogramVec
	overhead       *prometheus.HistogramVec
	journalLatency prometheus.Histogram
}

// NewMetrics returns the metrics of one daemon. present is called at every scrape and must return soon; nil reads
// nothing. What cannot be shown at a scrape is left out and said to errors; nil says it to nobody.
func NewMetrics(version string, present func() Present, errors *log.Logger) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help, Buckets: buckets,
		}, labels)
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		errors:    errors,
		requests:  counter("requests_total", "Client requests that ended, by how they ended and who served them last.", "provider", "account", "route", "outcome"),
		attempts:  counter("attempts_total", "Tries of requests at accounts.", "provider", "account", "outcome"),
		failovers: counter("failovers_total", "Requests that went on to another account.", "provider", "account", "reason"),
		detours:   counter("detours_total", "Requests that a session made elsewhere because its account pauses.", "provider", "account"),
		moves:     counter("moves_total", "Bindings that moved to the account.", "provider", "account", "reason"),
		bytes:     counter("body_bytes_total", "Bytes of bodies relayed.", "provider", "direction"),
		firstByte: histogram("first_byte_seconds", "Time from a request read to the first byte of its answer.", firstByteBuckets(), "provider", "route"),
		overhead:  histogram("overhead_seconds", "Part of the time to the first byte that was spent in the daemon.", latencyBuckets(), "provider", "route"),
		journalLatency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "journal_sync_seconds",
			Help: "Time until entries were durable.", Buckets: latencyBuckets(),
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(build, m.requests, m.attempts, m.failovers, m.detours, m.moves, m.bytes, m.firstByte,
		m.overhead, m.journalLatency,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if present != nil {
		m.registry.MustRegister(newPresentCollector(present))
	}
	return m
}

const namespace = "noria"

// latencyBuckets reach from 25 µs, what a lean request costs, to a disk that hangs.
func latencyBuckets() []float64 {
	return []float64{.000025, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2, 10}
}

// firstByteBuckets reach to the five minutes after which the clients themselves give up.
func firstByteBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300}
}

// Record counts an event of the proxy, as [List.Record] gave it back: sanitized. Other events count nothing.
func (m *Metrics) Record(e Event) {
	switch e.Operation {
	case OperationRequest:
		m.recordRequest(e)
	case OperationAttempt:
		m.attempts.WithLabelValues(e.Provider, e.Account, string(e.Outcome)).Inc()
	case OperationFailover:
		// Codes of adapters could be any number.
		m.failovers.WithLabelValues(e.Provider, e.Account, string(listed(e.Reason, reasons))).Inc()
	case OperationDetour:
		m.detours.WithLabelValues(e.Provider, e.Account).Inc()
	case OperationMoved:
		m.moves.WithLabelValues(e.Provider, e.Account, string(e.Reason)).Inc()
	}
}

func (m *Metrics) recordRequest(e Event) {
	m.requests.WithLabelValues(e.Provider, e.Account, string(e.Route), string(e.Outcome)).Inc()
	m.bytes.WithLabelValues(e.Provider, "up").Add(float64(e.BytesUp))
	m.bytes.WithLabelValues(e.Provider, "down").Add(float64(e.BytesDown))
	if e.FirstByte > 0 {
		m.firstByte.WithLabelValues(e.Provider, string(e.Route)).Observe(e.FirstByte.Seconds())
	}
	if e.Overhead > 0 {
		m.overhead.WithLabelValues(e.Provider, string(e.Route)).Observe(e.Overhead.Seconds())
	}
}

// ObserveJournalSync counts how long entries took to become durable.
func (m *Metrics) ObserveJournalSync(d time.Duration) { m.journalLatency.Observe(d.Seconds()) }

// Handler serves the metrics in the Prometheus formats. What cannot be shown keeps nothing else away.
func (m *Metrics) Handler() http.Handler {
	options := promhttp.HandlerOpts{
		Registry: m.registry, MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError,
	}
	if m.errors != nil {
		options.ErrorLog = m.errors
	}
	return promhttp.HandlerFor(m.registry, options)
}
