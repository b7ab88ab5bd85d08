package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// desk is a client before an adapter that is a function.
type desk struct {
	client *Client
	conn   *fakeConn
	redact *events.Redactor
}

func newDesk(hooks Hooks) *desk {
	d := &desk{conn: &fakeConn{}, redact: events.NewRedactor()}
	d.client = &Client{provider: "p", clock: clock.Wall{}, timing: designTiming(), refresh: func() time.Duration { return defaultRefresh },
		check: &answerCheck{redactor: d.redact}, hooks: hooks, chance: func() float64 { return 1 }}
	d.client.start()
	return d
}

// play sets what answers.
func (d *desk) play(answer func(ctx context.Context, method string, req, reply any) error) {
	d.conn.mu.Lock()
	defer d.conn.mu.Unlock()
	d.conn.answer = answer
}

// adopt makes an instance that offers the services, with one enabled account.
func (d *desk) adopt(config string, services ...string) *instance {
	i := d.instance(config, services...)
	d.client.adopt(i)
	return i
}

func (d *desk) instance(config string, services ...string) *instance {
	return &instance{conn: d.conn, process: &fakeProcess{gone: make(chan struct{})}, hangUp: func() {}, calls: newGate(),
		services: services, profile: fakeProfile(), startedAt: time.Now(),
		spec: Spec{Name: "p", Provider: "p", Config: &pluginv1.Config{ProviderJson: []byte(config),
			Accounts: []*pluginv1.Account{{Name: "work", Enabled: true}, {Name: "off"}}}}}
}

// leasing answers Lease with a numbered credential, after a while.
type leasing struct {
	mu         sync.Mutex // guards below
	asked      []*providerv1.LeaseRequest
	takes      time.Duration
	valid      time.Duration
	generation string
	same       bool // always the same credential
	stopped    bool // answers no call that takes its time
	err        error
	refuse     *providerv1.Refusal
}

func (l *leasing) answer(ctx context.Context, method string, req, reply any) error {
	if method == grpc_health_v1.Health_Check_FullMethodName {
		return l.health(ctx, reply.(*grpc_health_v1.HealthCheckResponse))
	}
	if method != providerv1.Provider_Lease_FullMethodName {
		return nil
	}
	l.mu.Lock()
	l.asked = append(l.asked, req.(*providerv1.LeaseRequest))
	number, takes, err, valid := len(l.asked), l.takes, l.err, l.valid
	generation, refuse := l.generation, l.refuse
	if l.same {
		number = 0
	}
	l.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return err
	}
	out := reply.(*providerv1.LeaseResponse)
	if refuse != nil {
		out.Result = &providerv1.LeaseResponse_Refusal{Refusal: refuse}
		return nil
	}
	out.Result = &providerv1.LeaseResponse_Lease{Lease: &providerv1.Lease{BaseUrl: "https://up.example", Generation: generation,
		Set:        []*providerv1.Header{{Name: "authorization", Value: fmt.Sprintf("Bearer credential-%d", number)}},
		ValidUntil: timestamppb.New(time.Now().Add(valid))}}
	return nil
}

// health answers unless the process is stopped.
func (l *leasing) health(ctx context.Context, reply *grpc_health_v1.HealthCheckResponse) error {
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if stopped {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	reply.Status = grpc_health_v1.HealthCheckResponse_SERVING
	return nil
}

func (l *leasing) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked)
}

func (l *leasing) set(change func(*leasing)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// leaseTest runs a test with a desk whose adapter leases.
func leaseTest(t *testing.T, test func(t *testing.T, d *desk, l *leasing)) {
	synctest.Test(t, func(t *testing.T) {
		l := &leasing{valid: 5 * time.Minute, generation: "g1"}
		d := newDesk(Hooks{})
		d.play(l.answer)
		d.adopt("{}")
		test(t, d, l)
		d.client.close()
	})
}

func credential(lease wire.Lease) string { return lease.Set[0].Value }

func TestLeaseIsAskedForOnceAndThenCached(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.takes = time.Second
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if _, err := d.client.Lease(context.Background(), "work"); err != nil {
					t.Errorf("lease: %v", err)
				}
			})
		}
		callers.Wait()
		began := time.Now()
		for range 100 {
			if _, err := d.client.Lease(context.Background(), "work"); err != nil {
				t.Errorf("lease: %v", err)
			}
		}
		if l.count() != 1 || time.Since(began) != 0 {
			t.Errorf("%d calls, cached hits took %v", l.count(), time.Since(began))
		}
	})
}

func TestLeaseInUseIsRenewedAheadBesideTheRequests(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		first, _ := d.client.Lease(context.Background(), "work")
		l.set(func(l *leasing) { l.takes = 10 * time.Second })
		time.Sleep(4*time.Minute + time.Second)
		for range 10 {
			began := time.Now()
			got, err := d.client.Lease(context.Background(), "work")
			if err != nil || credential(got) != credential(first) || time.Since(began) != 0 {
				t.Fatalf("during the renewal: %v after %v", err, time.Since(began))
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, _ := d.client.Lease(context.Background(), "work"); credential(got) != "Bearer credential-2" || l.count() != 2 {
			t.Errorf("after the renewal: %s, %d calls", credential(got), l.count())
		}
	})
}

func TestRenewalThatFailsIsTriedAgainAndTheLeaseGoesOn(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		_, _ = d.client.Lease(context.Background(), "work")
		l.set(func(l *leasing) { l.err = status.Error(codes.Internal, "no") })
		time.Sleep(4 * time.Minute)
		for range 50 {
			if _, err := d.client.Lease(context.Background(), "work"); err != nil {
				t.Fatalf("valid lease: %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := l.count(); n < 5 || n > 12 {
			t.Errorf("%d calls in 50 s, want one about every five", n)
		}
		time.Sleep(11 * time.Second)
		if _, err := d.client.Lease(context.Background(), "work"); !errors.Is(err, ErrFailed) {
			t.Errorf("expired lease: %v", err)
		}
	})
}

func TestCallerThatLeavesWaitsNoLonger(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.takes = 3 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := d.client.Lease(ctx, "work"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("lease: %v", err)
		}
	})
}

func TestRefusedLeaseIsRenewedOnceForAllThatWereRefused(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		refused, _ := d.client.Lease(context.Background(), "work")
		l.set(func(l *leasing) { l.takes = time.Second })
		var callers sync.WaitGroup
		for n := range 50 {
			callers.Go(func() {
				time.Sleep(time.Duration(n) * 100 * time.Millisecond) // some during, some after the renewal
				got, err := d.client.RefreshLease(context.Background(), "work", refused)
				if err != nil || credential(got) != "Bearer credential-2" {
					t.Errorf("refresh: %v", err)
				}
			})
		}
		callers.Wait()
		if l.count() != 2 || !l.asked[1].GetRefresh() || l.asked[1].GetRefusedGeneration() != "g1" {
			t.Errorf("%d calls, the last %v", l.count(), l.asked[len(l.asked)-1])
		}
	})
}

func TestRenewalThatGivesTheRefusedCredentialAgainIsNotRepeatedForEveryRefusal(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.same = true
		refused, _ := d.client.Lease(context.Background(), "work")
		for range 20 {
			if _, err := d.client.RefreshLease(context.Background(), "work", refused); err != nil {
				t.Fatal(err)
			}
		}
		if l.count() != 2 {
			t.Errorf("%d calls", l.count())
		}
		time.Sleep(designTiming().refreshMemory)
		_, _ = d.client.RefreshLease(context.Background(), "work", refused)
		if l.count() != 3 {
			t.Errorf("later: %d calls", l.count())
		}
	})
}

func TestRefreshDuringAnOrdinaryRenewalOfTheSameCredentialAsksAgain(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.same = true
		refused, _ := d.client.Lease(context.Background(), "work")
		l.set(func(l *leasing) { l.takes = time.Second })
		time.Sleep(4 * time.Minute)
		_, _ = d.client.Lease(context.Background(), "work") // begins a renewal
		if _, err := d.client.RefreshLease(context.Background(), "work", refused); err != nil {
			t.Fatal(err)
		}
		if l.count() != 3 || !l.asked[2].GetRefresh() {
			t.Errorf("%d calls, the last %v", l.count(), l.asked[len(l.asked)-1])
		}
	})
}

func TestRefusalIsHandedOnAndNotCached(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.refuse = &providerv1.Refusal{Code: providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, Reason: "run noria connect p/work"}
		var refused *RefusedError
		if _, err := d.client.Lease(context.Background(), "work"); !errors.As(err, &refused) || refused.Reason != "run noria connect p/work" {
			t.Errorf("lease: %v", err)
		}
		l.set(func(l *leasing) { l.refuse = nil })
		if _, err := d.client.Lease(context.Background(), "work"); err != nil {
			t.Errorf("after signing in: %v", err)
		}
	})
}

func TestLeaseOfAnAccountThatIsNotServedIsUnknown(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		for _, account := range []string{"off", "stranger", ""} {
			if _, err := d.client.Lease(context.Background(), account); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", account, err)
			}
		}
		if l.count() != 0 {
			t.Errorf("%d calls", l.count())
		}
	})
}

func TestValidLeaseGoesOnWhileTheAdapterIsAway(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		_, _ = d.client.Lease(context.Background(), "work")
		d.client.adopt(nil)
		if _, err := d.client.Lease(context.Background(), "work"); err != nil {
			t.Errorf("valid: %v", err)
		}
		time.Sleep(5 * time.Minute)
		began := time.Now()
		if _, err := d.client.Lease(context.Background(), "work"); !errors.Is(err, ErrAway) || time.Since(began) != 5*time.Second {
			t.Errorf("expired: %v after %v", err, time.Since(began))
		}
	})
}

func TestRequestThatNeedsALeaseIsServedByTheRestartedAdapter(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		d.client.adopt(nil)
		time.AfterFunc(3*time.Second, func() { d.adopt("{}") })
		began := time.Now()
		if _, err := d.client.Lease(context.Background(), "work"); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAdapterThatEndsDuringTheCallIsAskedAgainOnceItIsBack(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.err = status.Error(codes.Unavailable, "gone")
		l.takes = time.Second
		time.AfterFunc(500*time.Millisecond, func() { d.client.adopt(nil) })
		time.AfterFunc(2*time.Second, func() {
			l.set(func(l *leasing) { l.err = nil })
			d.adopt("{}")
		})
		if _, err := d.client.Lease(context.Background(), "work"); err != nil || l.count() != 2 {
			t.Errorf("%v after %d calls", err, l.count())
		}
	})
}

func TestLeasesAreDroppedOnReloadDisconnectAndDisable(t *testing.T) {
	cases := map[string]struct {
		act   func(*desk)
		calls int
	}{
		"restart with the same configuration keeps them": {func(d *desk) { d.adopt("{}") }, 1},
		"reload":     {func(d *desk) { d.adopt(`{"changed": true}`) }, 2},
		"disconnect": {func(d *desk) { d.client.DropLease("work") }, 2},
		"disable":    {func(d *desk) { d.client.withdraw(); d.adopt("{}") }, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
				_, _ = d.client.Lease(context.Background(), "work")
				c.act(d)
				if _, err := d.client.Lease(context.Background(), "work"); err != nil || l.count() != c.calls {
					t.Errorf("%v after %d calls, want %d", err, l.count(), c.calls)
				}
			})
		})
	}
}

func TestLeaseThatWasAskedForBeforeADropIsNotKept(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		l.takes = time.Second
		time.AfterFunc(500*time.Millisecond, func() { d.client.DropLease("work") })
		got, err := d.client.Lease(context.Background(), "work")
		if err != nil || credential(got) != "Bearer credential-2" {
			t.Errorf("%v: the caller has the lease from before the drop", err)
		}
	})
}

func TestChangedGenerationIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		d := newDesk(Hooks{OnGeneration: func(account quota.AccountID, before, after string) {
			reported = append(reported, account.String()+" "+before+">"+after)
		}})
		l := &leasing{valid: 5 * time.Minute, generation: "g1"}
		d.play(l.answer)
		d.adopt("{}")
		_, _ = d.client.Lease(context.Background(), "work")
		d.client.DropLease("work")
		_, _ = d.client.Lease(context.Background(), "work")
		l.set(func(l *leasing) { l.generation = "g2" })
		d.client.DropLease("work")
		_, _ = d.client.Lease(context.Background(), "work")
		d.client.close()
		if got := strings.Join(reported, ", "); got != "p/work >g1, p/work g1>g2" {
			t.Errorf("reported %s", got)
		}
	})
}

func TestCredentialIsRedactedAsLongAsItIsHeld(t *testing.T) {
	leaseTest(t, func(t *testing.T, d *desk, l *leasing) {
		_, _ = d.client.Lease(context.Background(), "work")
		if got := d.redact.Text("x credential-1 y"); strings.Contains(got, "credential-1") {
			t.Errorf("held: %q", got)
		}
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		if (*d.client.accounts.Load())["work"].leases.current.Load() != nil {
			t.Error("expired lease is still in memory")
		}
		if got := d.redact.Text("x credential-1 y"); !strings.Contains(got, "credential-1") {
			t.Error("redactor grows with every lease")
		}
	})
}

func BenchmarkCachedLease(b *testing.B) {
	l := &leasing{valid: 5 * time.Minute, generation: "g1"}
	d := newDesk(Hooks{})
	d.play(l.answer)
	d.adopt("{}")
	defer d.client.close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := d.client.Lease(context.Background(), "work"); err != nil {
				b.Error(err)
			}
		}
	})
}
