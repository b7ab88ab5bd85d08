package plugin

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// watchQuota keeps a stream of readings open as long as the adapter offers one, opened again with backoff when it ends.
func (c *Client) watchQuota(ctx context.Context) {
	wait := c.timing.watchFirst
	for ctx.Err() == nil {
		i, err := c.await(ctx)
		if err != nil {
			return
		}
		opened := time.Now()
		if code := c.watchOn(ctx, i); code == codes.Unimplemented {
			// This one has no such stream; perhaps the next.
			c.awaitOther(ctx, i)
			continue
		}
		if time.Since(opened) >= c.timing.watchMost {
			wait = c.timing.watchFirst
		}
		timer := time.NewTimer(jitter(wait, c.chance()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, c.timing.watchMost)
	}
}

// watchOn reads the stream of one instance to its end.
func (c *Client) watchOn(ctx context.Context, i *instance) codes.Code {
	if !i.offers(wire.ServiceQuota) {
		return codes.Unimplemented
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// An instance that drains waits for its calls. The stream is none of them, and must not outlive it.
	stop := context.AfterFunc(i.calls.closing, cancel)
	defer stop()
	stream, err := providerv1.NewQuotaClient(i.conn).WatchQuota(ctx, &providerv1.WatchQuotaRequest{})
	if err != nil {
		return status.Code(err)
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return status.Code(err)
		}
		// The account must be one that is served; anything else is dropped.
		if a, err := c.enabled(message.GetAccount()); err == nil {
			a.watched.put("", watched{message, c.clock.Now()}, false, func(_, newest watched) watched { return newest })
		}
		// A flood is stopped by gRPC's flow control.
		select {
		case <-ctx.Done():
		case <-time.After(watchPace):
		}
	}
}

// watchPace is the least time between two messages of a stream.
const watchPace = 10 * time.Millisecond

// awaitOther returns when the instance is no longer the one to call.
func (c *Client) awaitOther(ctx context.Context, old *instance) {
	for {
		i, changed := c.present()
		if i != old {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// watched is a message of the stream and when it came.
type watched struct {
	message *providerv1.WatchQuotaResponse
	at      time.Time
}

// newWatched slows the stream down to the pace of observations.
func (c *Client) newWatched(ctx context.Context, a *account) *paced[watched] {
	return newPaced(ctx, &c.background, c.timing.observeEvery, c.timing.observeEvery, func(_ context.Context, w watched) {
		c.reportQuota(a, w.message.GetWindows(), w.message.GetAuthState(), w.at)
	})
}
