package plugin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// maxUrgentModels bounds for how many models of an account the urgent headers are remembered.
const maxUrgentModels = 64

// observer coalesces the telemetry of one account on its way to the adapter.
type observer struct {
	client  *Client
	account *account
	queue   *paced[observation]

	mu sync.Mutex // guards urgent
	// urgent holds the last values of urgent headers by model.
	urgent map[string]string
}

// observation is what one answer, or several, showed.
type observation struct {
	request *providerv1.ObserveRequest
	// sentAt is when the request was sent; of several the earliest, so that nothing passes for newer than it is.
	sentAt time.Time
}

func newObserver(ctx context.Context, c *Client, a *account) *observer {
	o := &observer{client: c, account: a, urgent: map[string]string{}}
	o.queue = newPaced(ctx, &c.background, c.timing.observeEvery, c.timing.urgentEvery, o.deliver)
	return o
}

// Observe hands telemetry over and returns at once. It is coalesced, newest per account and model, and comes back
// through Hooks.OnWindows at most once a second per account, at once when a header that the profile calls urgent
// changed.
func (c *Client) Observe(account string, observed *providerv1.ObserveRequest, sentAt time.Time) {
	a, err := c.enabled(account)
	if err != nil {
		return
	}
	a.use(c.clock.Now())
	if len(observed.GetResponseHeaders()) == 0 && len(observed.GetEvents()) == 0 {
		return
	}
	observed.Account = account
	a.observer.queue.put(observed.GetModel(), observation{observed, sentAt}, a.observer.isUrgent(observed), mergeObservations)
}

// mergeObservations keeps the newer one whole; what kind of evidence it lacks is taken over from the older one.
func mergeObservations(waiting, item observation) observation {
	older, newer := waiting, item
	if newer.request.GetCompletion() < older.request.GetCompletion() {
		older, newer = newer, older
	}
	lacksHeaders := len(newer.request.GetResponseHeaders()) == 0 && len(older.request.GetResponseHeaders()) > 0
	var events []*providerv1.Event
	for _, e := range older.request.GetEvents() {
		if !slices.ContainsFunc(newer.request.GetEvents(), func(n *providerv1.Event) bool { return n.GetType() == e.GetType() }) {
			events = append(events, e)
		}
	}
	if !lacksHeaders && len(events) == 0 {
		return newer
	}
	merged := observation{request: proto.CloneOf(newer.request), sentAt: newer.sentAt}
	if lacksHeaders {
		merged.request.ResponseHeaders = older.request.GetResponseHeaders()
	}
	merged.request.Events = append(events, merged.request.GetEvents()...)
	if older.sentAt.Before(merged.sentAt) {
		merged.sentAt = older.sentAt
	}
	return merged
}

// isUrgent reports whether a header that the profile calls urgent has another value than the last time.
func (o *observer) isUrgent(observed *providerv1.ObserveRequest) bool {
	profile, ok := o.client.Profile()
	if !ok {
		return false
	}
	var values []string
	for _, h := range observed.GetResponseHeaders() {
		if matchesAny(h.GetName(), profile.GetExposure().GetUrgentHeaders()) {
			values = append(values, strings.ToLower(h.GetName())+"\x00"+h.GetValue())
		}
	}
	if len(values) == 0 {
		return false
	}
	slices.Sort(values)
	now, model := strings.Join(values, "\x01"), observed.GetModel()
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.urgent[model]
	if !known && len(o.urgent) == maxUrgentModels {
		clear(o.urgent)
	}
	o.urgent[model] = now
	return before != now
}

// matchesAny compares a header name, in any case, with names that may end in * for a prefix.
func matchesAny(name string, patterns []string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return name == pattern
	})
}

// deliver asks the adapter what the observation means. While it is away the observation is lost: telemetry ages.
func (o *observer) deliver(ctx context.Context, seen observation) {
	c := o.client
	var answer *providerv1.ObserveResponse
	err := c.invoke(ctx, c.timing.observe, "", "Observe", func(ctx context.Context, i *instance) (err error) {
		answer, err = providerv1.NewProviderClient(i.conn).Observe(ctx, seen.request)
		return err
	})
	if err != nil {
		return
	}
	natural := quota.SourceResponseHeader
	if len(seen.request.GetResponseHeaders()) == 0 {
		natural = quota.SourceResponseEvent
	}
	c.report(WindowReport{
		Account:    o.account.id,
		Readings:   c.check.readings(answer.GetWindows(), natural, seen.sentAt),
		SentAt:     seen.sentAt,
		Completion: seen.request.GetCompletion(),
	})
}

func (c *Client) report(r WindowReport) {
	if c.hooks.OnWindows != nil && len(r.Readings) > 0 {
		c.hooks.OnWindows(r)
	}
}
