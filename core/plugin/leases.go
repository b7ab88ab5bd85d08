package plugin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// leases holds the lease of one account, in memory only, until it expires. A hit reads one pointer.
type leases struct {
	client  *Client
	account *account
	current atomic.Pointer[heldLease]

	mu sync.Mutex // guards below
	// call is the call that is under way; there is never a second one.
	call *leaseCall
	// epoch grows when leases are dropped; what was asked before is not kept.
	epoch uint64
	// generation of the last lease; known is false before the first.
	generation string
	known      bool
	// renewed is the last renewal, of use for others that were refused with the same lease.
	renewed *leaseCall
}

// heldLease is a lease in the cache.
type heldLease struct {
	lease wire.Lease
	// renewAt is when the next use of it starts a renewal, in unix nanoseconds.
	renewAt atomic.Int64
	expiry  *time.Timer
	release []func()
}

func (h *heldLease) forget() {
	h.expiry.Stop()
	for _, release := range h.release {
		release()
	}
}

// leaseCall is one question to the adapter and its answer.
type leaseCall struct {
	// refused is the lease that was refused upstream; nil when none was valid.
	refused *wire.Lease
	epoch   uint64
	done    chan struct{}
	// late: somebody waited for it as long as a request may. Guarded like the rest of leases.
	late bool
	// The answer, once done is closed.
	lease wire.Lease
	err   error
	at    time.Time
}

// errDropped: the lease was asked for before leases were dropped.
var errDropped = errors.New("lease dropped meanwhile")

func newLeases(c *Client, a *account) *leases { return &leases{client: c, account: a} }

// cached is the valid lease. One that ends soon is renewed beside it.
func (l *leases) cached(now time.Time) (wire.Lease, bool) {
	h := l.current.Load()
	if h == nil || !now.Before(h.lease.ValidUntil) {
		return wire.Lease{}, false
	}
	if due := h.renewAt.Load(); now.UnixNano() >= due {
		// Whoever changes it starts the renewal; if that fails, the next try is a while later.
		if h.renewAt.CompareAndSwap(due, now.Add(l.client.timing.leaseWait).UnixNano()) {
			l.join(nil)
		}
	}
	return h.lease, true
}

// obtain waits for a lease, at most as long as a request may wait for one.
func (l *leases) obtain(ctx context.Context, refused *wire.Lease) (wire.Lease, error) {
	wait, cancel := context.WithTimeout(ctx, l.client.timing.leaseWait)
	defer cancel()
	for {
		if lease, ok := l.newer(refused); ok {
			return lease, nil
		}
		call := l.join(refused)
		select {
		case <-call.done:
		case <-wait.Done():
			if ctx.Err() != nil {
				return wire.Lease{}, ctx.Err()
			}
			return wire.Lease{}, l.givenUp(ctx, call)
		}
		again := errors.Is(call.err, errDropped) ||
			call.err == nil && refused != nil && call.refused == nil && sameCredential(call.lease, *refused)
		if !again {
			return call.lease, call.err
		}
	}
}

// givenUp notes that a caller waits no longer for the call.
func (l *leases) givenUp(ctx context.Context, call *leaseCall) error {
	l.mu.Lock()
	call.late = true
	l.mu.Unlock()
	return l.overdue(ctx, l.client.timing.leaseWait)
}

// overdue says whose fault it is that an answer did not come in time: an adapter that is there and answers other calls
// waits for the account's credential itself.
func (l *leases) overdue(ctx context.Context, waited time.Duration) error {
	i, _ := l.client.present()
	if i == nil || !i.healthy(ctx, l.client.timing.leaseProof) {
		return l.client.away("wait for lease")
	}
	return &LateError{Waited: waited}
}

// newer is the cached lease when it is not the one that was refused; then nobody need be asked.
func (l *leases) newer(refused *wire.Lease) (wire.Lease, bool) {
	h := l.current.Load()
	if h == nil || refused == nil || sameCredential(h.lease, *refused) || !l.client.clock.Now().Before(h.lease.ValidUntil) {
		return wire.Lease{}, false
	}
	return h.lease, true
}

// join returns the call that answers the question, one under way if there is any.
func (l *leases) join(refused *wire.Lease) *leaseCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.call != nil {
		return l.call
	}
	now := l.client.clock.Now()
	if r := l.renewed; refused != nil && r != nil && sameCredential(*r.refused, *refused) && now.Sub(r.at) < l.client.timing.refreshMemory {
		return r
	}
	call := &leaseCall{refused: refused, epoch: l.epoch, done: make(chan struct{})}
	if refused != nil {
		// Only now is it certain that the cached one is the refused one, or none.
		l.empty()
	}
	l.call = call
	task := func(ctx context.Context) { l.run(ctx, call) }
	if !l.client.background.run(l.client.background.ctx, task) {
		call.err = ErrClosed
		l.call = nil
		close(call.done)
	}
	return call
}

// run asks the adapter and keeps the answer.
func (l *leases) run(ctx context.Context, call *leaseCall) {
	ctx, cancel := context.WithTimeout(ctx, l.client.timing.leaseTime)
	defer cancel()
	lease, err := l.ask(ctx, call.refused)
	held := &heldLease{lease: lease}
	if err == nil {
		// Protected before anybody can have it.
		held.release = l.protect(lease)
	}
	before, changed := l.finish(call, held, err)
	if changed && l.client.hooks.OnGeneration != nil {
		l.client.hooks.OnGeneration(l.account.id, before, lease.Generation)
	}
	if l.cameLate(call) && l.client.hooks.OnLateLease != nil {
		l.client.hooks.OnLateLease(l.account.id)
	}
	close(call.done)
}

// cameLate reports whether a call that has ended brought a lease that somebody gave up waiting for.
func (l *leases) cameLate(call *leaseCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return call.late && call.err == nil
}

// ask calls the adapter; when it ends during the call, its successor is asked, once.
func (l *leases) ask(ctx context.Context, refused *wire.Lease) (lease wire.Lease, err error) {
	request := &providerv1.LeaseRequest{Account: l.account.id.Name}
	if refused != nil {
		request.Refresh, request.RefusedGeneration = true, refused.Generation
	}
	c := l.client
	for range 2 {
		i, awaited := c.await(ctx)
		if awaited != nil {
			return wire.Lease{}, awaited
		}
		err = c.invokeOn(ctx, i, c.timing.leaseTime, "", "Lease", func(ctx context.Context, i *instance) error {
			answer, err := providerv1.NewProviderClient(i.conn).Lease(ctx, request)
			if err == nil {
				lease, err = c.check.lease(answer, c.clock.Now())
			}
			return err
		})
		if ctx.Err() != nil {
			return wire.Lease{}, l.overdue(c.background.ctx, c.timing.leaseTime)
		}
		if !errors.Is(err, ErrAway) {
			return lease, err
		}
	}
	return wire.Lease{}, err
}

// finish ends the call: it keeps the lease unless leases were dropped meanwhile, and reports a changed generation.
func (l *leases) finish(call *leaseCall, held *heldLease, err error) (before string, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = nil
	call.lease, call.err, call.at = held.lease, err, l.client.clock.Now()
	if call.err == nil && call.epoch != l.epoch {
		for _, release := range held.release {
			release()
		}
		call.lease, call.err = wire.Lease{}, errDropped
	}
	if call.err != nil {
		return "", false
	}
	if call.refused != nil {
		l.renewed = call
	}
	before, changed = l.generation, !l.known || l.generation != held.lease.Generation
	l.generation, l.known = held.lease.Generation, true
	l.hold(held, call.at)
	return before, changed
}

// hold puts the lease into the cache. It goes when it expires, used or not. The caller holds the lock.
func (l *leases) hold(held *heldLease, now time.Time) {
	left := held.lease.ValidUntil.Sub(now)
	ahead := min(l.client.timing.leaseAhead, left/4)
	held.renewAt.Store(held.lease.ValidUntil.Add(-ahead).UnixNano())
	held.expiry = time.AfterFunc(left, func() { l.expire(held) })
	if old := l.current.Swap(held); old != nil {
		old.forget()
	}
}

func (l *leases) expire(held *heldLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.CompareAndSwap(held, nil) {
		held.forget()
	}
	if l.renewed != nil && sameCredential(l.renewed.lease, held.lease) {
		l.renewed = nil
	}
}

// drop forgets the lease and whatever is being asked.
func (l *leases) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	l.renewed = nil
	l.empty()
}

// empty forgets the cached lease. The caller holds the lock.
func (l *leases) empty() {
	if old := l.current.Swap(nil); old != nil {
		old.forget()
	}
}

// protect keeps the values of a lease out of logs. What extends a list is no credential.
func (l *leases) protect(lease wire.Lease) (release []func()) {
	for _, h := range lease.Set {
		release = append(release, l.client.check.redactor.Protect(h.Value))
		if _, token, ok := strings.Cut(h.Value, " "); ok {
			release = append(release, l.client.check.redactor.Protect(token))
		}
	}
	return release
}

// sameCredential compares leases apart from how long they are valid.
func sameCredential(a, b wire.Lease) bool {
	return a.BaseURL == b.BaseURL && a.Generation == b.Generation && slices.Equal(a.Set, b.Set) &&
		slices.Equal(a.Remove, b.Remove) && slices.Equal(a.Extend, b.Extend)
}
