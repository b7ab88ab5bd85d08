package plugin

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// played is a stream that gives what messages hold and then ends, or waits to be ended.
type played struct {
	grpc.ClientStream
	ctx      context.Context
	messages []*providerv1.WatchQuotaResponse
	ends     bool
}

func (*played) SendMsg(any) error { return nil }

func (*played) CloseSend() error { return nil }

func (p *played) RecvMsg(into any) error {
	if len(p.messages) > 0 {
		next := p.messages[0]
		p.messages = p.messages[1:]
		out := into.(*providerv1.WatchQuotaResponse)
		out.Account, out.Windows, out.AuthState = next.GetAccount(), next.GetWindows(), next.GetAuthState()
		return nil
	}
	if !p.ends {
		<-p.ctx.Done()
		return status.FromContextError(p.ctx.Err()).Err()
	}
	return io.EOF
}

func watchTest(t *testing.T, stream func(context.Context) (grpc.ClientStream, error), test func(t *testing.T, d *desk, in *inbox)) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{}
		d := newDesk(in.hooks())
		d.conn.stream = stream
		d.adopt("{}", wire.ServiceQuota)
		test(t, d, in)
		d.client.close()
	})
}

func opened(d *desk) int { return d.conn.count(providerv1.Quota_WatchQuota_FullMethodName) }

func TestWatchThatEndsIsOpenedAgainWithBackoff(t *testing.T) {
	ends := func(ctx context.Context) (grpc.ClientStream, error) { return &played{ctx: ctx, ends: true}, nil }
	watchTest(t, ends, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(10 * time.Minute)
		// At 0, 1, 3, 7, 15, 31 and 63 s, then every minute.
		if n := opened(d); n < 14 || n > 17 {
			t.Errorf("opened %d times in ten minutes", n)
		}
	})
}

func TestWatchThatIsNotOfferedIsOpenedOncePerInstance(t *testing.T) {
	none := func(context.Context) (grpc.ClientStream, error) { return nil, status.Error(codes.Unimplemented, "") }
	watchTest(t, none, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(time.Hour)
		d.adopt("{}", wire.ServiceQuota)
		time.Sleep(time.Hour)
		if n := opened(d); n != 2 {
			t.Errorf("opened %d times for two instances", n)
		}
	})
}

func TestWatchReportsWhatIsAboutServedAccounts(t *testing.T) {
	three := func(ctx context.Context) (grpc.ClientStream, error) {
		return &played{ctx: ctx, messages: []*providerv1.WatchQuotaResponse{
			{Account: "stranger", Windows: fakeWindows(1)},
			{Account: "off", Windows: fakeWindows(2)},
			{Account: "work", Windows: fakeWindows(3), AuthState: providerv1.AuthState_AUTH_STATE_EXPIRED},
		}}, nil
	}
	watchTest(t, three, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(time.Second)
		synctest.Wait()
		reports := in.reports()
		if len(reports) != 1 || reports[0].Readings[0].UsedPercent != 3 || in.auth[0] != providerv1.AuthState_AUTH_STATE_EXPIRED {
			t.Errorf("reports %+v, auth %v", reports, in.auth)
		}
	})
}

func TestWatchEndsWithTheInstanceThatDrains(t *testing.T) {
	waits := func(ctx context.Context) (grpc.ClientStream, error) { return &played{ctx: ctx}, nil }
	watchTest(t, waits, func(t *testing.T, d *desk, in *inbox) {
		synctest.Wait()
		old := d.client.current.Load()
		if opened(d) != 1 {
			t.Fatal("no watch")
		}
		d.adopt("{}", wire.ServiceQuota)
		began := time.Now()
		old.retire(context.Background(), designTiming())
		if took := time.Since(began); took != 0 {
			t.Errorf("the stream held the drain up for %v", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := opened(d); n != 2 {
			t.Errorf("opened %d times for two instances", n)
		}
	})
}
