package events

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Present is the state of things at the time of a scrape. It is read then, not pushed, so what is gone (an account, a
// window) leaves no last value behind.
type Present struct {
	// StreamsOpen counts answers being relayed, by provider.
	StreamsOpen map[string]int
	Bindings    int
	Accounts    []PresentAccount
	Adapters    []PresentAdapter
	// JournalDegraded: serving goes on from memory because the disk does not take entries.
	JournalDegraded bool
}

// PresentAccount is one account.
type PresentAccount struct {
	Provider, Account string
	Enabled           bool
	// Reservations counts work in flight.
	Reservations int
	// Blockers counts by cause.
	Blockers map[string]int
	Windows  []PresentWindow
}

// PresentWindow is one window whose used percentage is known; what is unknown is left out.
type PresentWindow struct {
	ID          string
	UsedPercent float64
	// ResetsAt is zero when unknown.
	ResetsAt time.Time
}

// PresentAdapter is one adapter process.
type PresentAdapter struct {
	Name     string
	Ready    bool
	Restarts int
	// Unchecked: its executable is not checked against a digest.
	Unchecked bool
}

// presentCollector reads the Present at every scrape.
type presentCollector struct {
	present func() Present

	streams, bindings, degraded                        *prometheus.Desc
	enabled, reservations, blockers, used, windowReset *prometheus.Desc
	adapterReady, adapterRestarts, adapterUnchecked    *prometheus.Desc
}

func newPresentCollector(present func() Present) *presentCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &presentCollector{
		present:          present,
		streams:          desc("streams_open", "Answers being relayed.", "provider"),
		bindings:         desc("bindings", "Bindings kept."),
		degraded:         desc("journal_degraded", "1 while entries do not become durable."),
		enabled:          desc("account_enabled", "1 when the account may serve.", "provider", "account"),
		reservations:     desc("reservations", "Work in flight.", "provider", "account"),
		blockers:         desc("blockers", "Reasons why the account cannot serve.", "provider", "account", "cause"),
		used:             desc("window_used_percent", "Used part of a window, where it is known.", "provider", "account", "window"),
		windowReset:      desc("window_reset_timestamp_seconds", "When the window resets, where it is known.", "provider", "account", "window"),
		adapterReady:     desc("adapter_ready", "1 when the adapter is ready.", "adapter"),
		adapterRestarts:  desc("adapter_restarts_total", "Times the adapter was started again.", "adapter"),
		adapterUnchecked: desc("adapter_unchecked", "1 when the adapter's executable is not checked (dev = true).", "adapter"),
	}
}

// Describe sends every description.
func (c *presentCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.streams, c.bindings, c.degraded, c.enabled, c.reservations, c.blockers, c.used, c.windowReset,
		c.adapterReady, c.adapterRestarts, c.adapterUnchecked,
	} {
		descs <- desc
	}
}

// Collect reads the present and sends it.
func (c *presentCollector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	present := c.present()
	names := &distinctNames{shown: map[[2]string]string{}, hidden: map[string]int{}}
	gauge(c.bindings, float64(present.Bindings))
	gauge(c.degraded, oneIf(present.JournalDegraded))
	for _, account := range present.Accounts {
		c.collectAccount(gauge, names, account)
	}
	for _, provider := range slices.Sorted(maps.Keys(present.StreamsOpen)) {
		gauge(c.streams, float64(present.StreamsOpen[provider]), names.of("provider", provider))
	}
	for _, adapter := range present.Adapters {
		name := names.of("adapter", adapter.Name)
		gauge(c.adapterReady, oneIf(adapter.Ready), name)
		gauge(c.adapterUnchecked, oneIf(adapter.Unchecked), name)
		metrics <- prometheus.MustNewConstMetric(c.adapterRestarts, prometheus.CounterValue, float64(adapter.Restarts), name)
	}
}

func (c *presentCollector) collectAccount(gauge func(*prometheus.Desc, float64, ...string), names *distinctNames, a PresentAccount) {
	provider := names.of("provider", a.Provider)
	account := names.of("account of "+provider, a.Account)
	gauge(c.enabled, oneIf(a.Enabled), provider, account)
	gauge(c.reservations, float64(a.Reservations), provider, account)
	for _, cause := range slices.Sorted(maps.Keys(a.Blockers)) {
		gauge(c.blockers, float64(a.Blockers[cause]), provider, account, names.of("cause", cause))
	}
	for _, window := range a.Windows {
		if math.IsNaN(window.UsedPercent) || math.IsInf(window.UsedPercent, 0) {
			continue
		}
		id := names.of("window of "+provider+"/"+account, window.ID)
		gauge(c.used, window.UsedPercent, provider, account, id)
		if !window.ResetsAt.IsZero() {
			gauge(c.windowReset, float64(window.ResetsAt.Unix()), provider, account, id)
		}
	}
}

// distinctNames are those that one scrape shows. Names that may not be shown are numbered, so that no two series are the
// same.
type distinctNames struct {
	// shown is by what is named and its name; hidden counts those that may not be shown, by what is named.
	shown  map[[2]string]string
	hidden map[string]int
}

func (d *distinctNames) of(kind, given string) string {
	key := [2]string{kind, given}
	if shown, ok := d.shown[key]; ok {
		return shown
	}
	shown := name(given)
	if shown == Redacted {
		if d.hidden[kind]++; d.hidden[kind] > 1 {
			shown = fmt.Sprintf("%s %d", Redacted, d.hidden[kind])
		}
	}
	d.shown[key] = shown
	return shown
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
