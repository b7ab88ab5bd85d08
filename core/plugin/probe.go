package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// probe reads the quota of one account now and then. Its one goroutine makes one probe at a time.
type probe struct {
	client  *Client
	account *account
	// kicks asks for a probe at once; the channel in it takes the result and holds one.
	kicks chan chan error
	// soon holds one: a probe is due as soon as the adapter can be asked. Nobody waits for it.
	soon chan struct{}
}

func newProbe(c *Client, a *account) *probe {
	return &probe{client: c, account: a, kicks: make(chan chan error), soon: make(chan struct{}, 1)}
}

// hurry asks for a probe and awaits none.
func (p *probe) hurry() {
	select {
	case p.soon <- struct{}{}:
	default:
	}
}

// RefreshQuota probes the account at once and returns when that probe ended.
func (c *Client) RefreshQuota(ctx context.Context, account string) error {
	a, err := c.enabled(account)
	if err != nil {
		return err
	}
	return a.probe.now(ctx)
}

// now waits for a probe that begins after the call.
func (p *probe) now(ctx context.Context) error {
	result := make(chan error, 1)
	select {
	case p.kicks <- result:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.client.background.ctx.Done():
		return ErrClosed
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run probes until the account leaves.
func (p *probe) run(ctx context.Context) {
	failures := 0
	var wait time.Duration // the first at once
	for {
		waiting, ok := p.pause(ctx, wait)
		if !ok {
			return
		}
		err := p.once(ctx)
		for _, result := range waiting {
			result <- err
		}
		switch {
		case err == nil:
			failures = 0
		case errors.Is(err, ErrNotOffered), !p.client.Ready():
			// Nobody was asked.
		default:
			failures++
		}
		wait = p.interval(failures)
	}
}

// pause returns when a probe is due, or was asked for; ok is false when the account leaves. While the adapter is away or
// reads no quota, nothing is due.
func (p *probe) pause(ctx context.Context, wait time.Duration) (waiting []chan error, ok bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		var soon <-chan struct{}
		i, changed := p.client.present()
		if i != nil && i.offers(wire.ServiceQuota) {
			due, soon = timer.C, p.soon
		}
		select {
		case <-ctx.Done():
			return nil, false
		case result := <-p.kicks:
			return p.collect(result), true
		case <-due:
			return nil, true
		case <-soon:
			return nil, true
		case <-changed:
		}
	}
}

// collect takes those who ask at the same time; one probe serves them all.
func (p *probe) collect(first chan error) []chan error {
	waiting := []chan error{first}
	for {
		select {
		case result := <-p.kicks:
			waiting = append(waiting, result)
		default:
			return waiting
		}
	}
}

// interval until the next probe: longer after failures and for an account that does not serve.
func (p *probe) interval(failures int) time.Duration {
	interval := p.client.refresh()
	most := max(p.client.timing.probeMost, interval)
	if p.client.clock.Now().Sub(time.Unix(p.account.used.Load(), 0)) > p.client.timing.probeIdle {
		interval = min(4*interval, most)
	}
	for range min(failures, 8) {
		interval = min(2*interval, most)
	}
	return jitter(interval, p.client.chance())
}

// once makes one probe and reports it. What it read counts as of when it was sent.
func (p *probe) once(ctx context.Context) error {
	c := p.client
	sentAt := c.clock.Now()
	var answer *providerv1.ReadQuotaResponse
	err := c.invoke(ctx, c.timing.readQuota, wire.ServiceQuota, "ReadQuota", func(ctx context.Context, i *instance) (err error) {
		answer, err = providerv1.NewQuotaClient(i.conn).ReadQuota(ctx, &providerv1.ReadQuotaRequest{Account: p.account.id.Name})
		return err
	})
	if ctx.Err() != nil {
		return fmt.Errorf("ReadQuota: %w", ErrAway)
	}
	if err == nil {
		c.reportQuota(p.account, answer.GetWindows(), answer.GetAuthState(), sentAt)
	}
	if c.hooks.OnProbe != nil && !errors.Is(err, ErrNotOffered) {
		c.hooks.OnProbe(ProbeReport{Account: p.account.id, SentAt: sentAt, Err: err})
	}
	return err
}

func (c *Client) reportQuota(a *account, windows []*providerv1.Window, state providerv1.AuthState, sentAt time.Time) {
	readings := c.check.readings(windows, quota.SourceOfficialClient, sentAt)
	c.report(WindowReport{Account: a.id, Readings: readings, SentAt: sentAt})
	c.compareWindows(a, readings)
	if state = authState(state); c.hooks.OnAuthState != nil && state != providerv1.AuthState_AUTH_STATE_UNSPECIFIED {
		c.hooks.OnAuthState(a.id, state, sentAt)
	}
}

// probeAll asks for a probe of every account and awaits none.
func (c *Client) probeAll() {
	for _, a := range *c.accounts.Load() {
		a.probe.hurry()
	}
}
