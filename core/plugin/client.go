package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Client calls the adapter of one provider, with the deadlines of the protocol, and checks its answers. It outlives the
// process behind it and is safe for concurrent use. Errors: ErrAway while there is no process or it does not answer,
// ErrUnknown for an account that is not configured or not enabled, ErrNotOffered, ErrBadAnswer.
type Client struct {
	provider string
	clock    clock.Clock
	timing   timing
	// refresh is the interval of quota probes; it may change.
	refresh func() time.Duration
	check   *answerCheck
	hooks   Hooks
	chance  func() float64

	// current is nil while the adapter is away.
	current atomic.Pointer[instance]
	profile atomic.Pointer[providerv1.Profile]
	// accounts enabled; the map is replaced, never changed.
	accounts atomic.Pointer[map[string]*account]

	background background
	redeclared redeclared
	redeclares *paced[*account]

	mu sync.Mutex // guards below
	// changed is closed, and replaced, whenever current changes.
	changed chan struct{}
	spec    Spec
}

// account is one enabled account.
type account struct {
	id       quota.AccountID
	leases   *leases
	observer *observer
	probe    *probe
	watched  *paced[watched]
	shown    lastShown
	// used is when it last served, in unix seconds.
	used atomic.Int64
	// leave ends its background work.
	leave context.CancelFunc
}

func (c *Client) start() {
	c.changed = make(chan struct{})
	c.accounts.Store(&map[string]*account{})
	c.background.ctx, c.background.cancel = context.WithCancel(context.Background())
	c.redeclares = newPaced(c.background.ctx, &c.background, c.timing.observeEvery, c.timing.observeEvery, c.redeclare)
	if c.hooks.OnWindows != nil || c.hooks.OnAuthState != nil {
		c.background.run(c.background.ctx, c.watchQuota)
	}
}

// close ends all background work and forgets every lease.
func (c *Client) close() {
	c.withdraw()
	c.background.close()
}

// adopt makes the instance the one to call; nil: away for now, cached leases go on.
func (c *Client) adopt(i *instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i == nil {
		c.become(nil)
		return
	}
	c.profile.Store(i.profile)
	changed := !sameSpec(c.spec, i.spec)
	c.spec = i.spec
	known := *c.accounts.Load()
	c.renewAccounts(i, changed)
	c.become(i)
	if !changed {
		return
	}
	// Quota may be that of another login. Before now the instance before this one would have been asked.
	for name, a := range *c.accounts.Load() {
		if known[name] != nil {
			a.probe.hurry()
		}
	}
}

// become makes it the instance to call and wakes those who wait for a change. The caller holds the lock.
func (c *Client) become(i *instance) {
	if c.current.Swap(i) != i {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// withdraw makes the adapter away and forgets accounts and leases.
func (c *Client) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.become(nil)
	c.spec = Spec{}
	old := *c.accounts.Swap(&map[string]*account{})
	for _, a := range old {
		a.close()
	}
}

// renewAccounts makes the accounts those of the instance. With a changed configuration every lease is dropped: it may be that
// of another login.
func (c *Client) renewAccounts(i *instance, changed bool) {
	old := *c.accounts.Load()
	accounts := map[string]*account{}
	for _, configured := range i.spec.Config.GetAccounts() {
		if !configured.GetEnabled() {
			continue
		}
		name := configured.GetName()
		a, known := old[name]
		switch {
		case !known:
			a = c.newAccount(name)
		case changed:
			a.leases.drop()
		}
		accounts[name] = a
	}
	c.accounts.Store(&accounts)
	for name, a := range old {
		if accounts[name] == nil {
			a.close()
		}
	}
}

func (c *Client) newAccount(name string) *account {
	ctx, leave := context.WithCancel(c.background.ctx)
	a := &account{id: quota.AccountID{Provider: c.provider, Name: name}, leave: leave}
	a.leases = newLeases(c, a)
	a.observer = newObserver(ctx, c, a)
	a.probe = newProbe(c, a)
	a.watched = c.newWatched(ctx, a)
	c.background.run(ctx, a.probe.run)
	return a
}

func (a *account) close() {
	a.leave()
	a.leases.drop()
}

// use notes that the account serves. It writes once a second at most, so that requests do not contend for it.
func (a *account) use(now time.Time) {
	if seconds := now.Unix(); a.used.Load() != seconds {
		a.used.Store(seconds)
	}
}

// Profile is the last profile received; ok is false while there never was one. It must not be changed.
func (c *Client) Profile() (profile *providerv1.Profile, ok bool) {
	profile = c.profile.Load()
	return profile, profile != nil
}

// Ready reports whether the adapter can be called now.
func (c *Client) Ready() bool { return c.current.Load() != nil }

func (c *Client) enabled(name string) (*account, error) {
	if a := (*c.accounts.Load())[name]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("%w account %s/%s", ErrUnknown, c.provider, printable.Line(name, maxIDBytes))
}

// present returns the instance, nil while there is none, and what is closed when that changes.
func (c *Client) present() (i *instance, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Load(), c.changed
}

// await returns the instance as soon as there is one.
func (c *Client) await(ctx context.Context) (*instance, error) {
	for {
		i, changed := c.present()
		if i != nil {
			return i, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, c.away("wait for adapter")
		}
	}
}

func (c *Client) away(what string) error { return fmt.Errorf("%s: %w", what, ErrAway) }

// invoke makes one call of the present instance within the deadline. service is empty for what every adapter serves.
func (c *Client) invoke(ctx context.Context, deadline time.Duration, service, method string, call func(context.Context, *instance) error) error {
	for {
		i := c.current.Load()
		if i == nil {
			return c.away(method)
		}
		err := c.invokeOn(ctx, i, deadline, service, method, call)
		if !errors.Is(err, errDraining) || c.current.Load() == i {
			return err
		}
		// It was swapped between the look and the call; the new one is ready.
	}
}

// errDraining: the instance takes no more calls.
var errDraining = fmt.Errorf("%w: draining", ErrAway)

func (c *Client) invokeOn(ctx context.Context, i *instance, deadline time.Duration, service, method string, call func(context.Context, *instance) error) error {
	if service != "" && !i.offers(service) {
		return fmt.Errorf("%s: %w", method, ErrNotOffered)
	}
	if !i.calls.enter() {
		return errDraining
	}
	defer i.calls.leave()
	bounded, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := call(bounded, i)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.callError(method, err)
}

// callError tells a failed call by gRPC's code alone: the text is the adapter's. A failed precondition has a sentence that
// is meant for the user.
func (c *Client) callError(method string, err error) error {
	var refused *RefusedError
	if errors.As(err, &refused) || errors.Is(err, ErrUnknown) {
		return err
	}
	if errors.Is(err, ErrBadAnswer) {
		return fmt.Errorf("%s: %w", method, err)
	}
	code := status.Code(err)
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("%s: %w: %s", method, ErrAway, code)
	case codes.Unimplemented:
		return fmt.Errorf("%s: %w", method, ErrNotOffered)
	case codes.FailedPrecondition:
		if reason := c.check.sentence(status.Convert(err).Message()); reason != "" {
			return &ReportedError{Method: method, Reason: reason}
		}
	}
	return fmt.Errorf("%s: %w: %s", method, ErrFailed, code)
}

// Lease gives the cached lease of the account without any call when it is valid, else asks the adapter and waits at most
// five seconds, while the adapter may go on in the background. Errors also: *RefusedError, *LateError.
func (c *Client) Lease(ctx context.Context, account string) (wire.Lease, error) {
	a, err := c.enabled(account)
	if err != nil {
		return wire.Lease{}, err
	}
	now := c.clock.Now()
	a.use(now)
	if lease, ok := a.leases.cached(now); ok {
		return lease, nil
	}
	return a.leases.obtain(ctx, nil)
}

// RefreshLease drops the lease that was refused upstream, if it is still the cached one, and gives a renewed one.
func (c *Client) RefreshLease(ctx context.Context, account string, refused wire.Lease) (wire.Lease, error) {
	a, err := c.enabled(account)
	if err != nil {
		return wire.Lease{}, err
	}
	return a.leases.obtain(ctx, &refused)
}

// DropLease forgets the lease of the account, after connect and disconnect.
func (c *Client) DropLease(account string) {
	if a, err := c.enabled(account); err == nil {
		a.leases.drop()
	}
}
