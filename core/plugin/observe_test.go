package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// inbox takes what hooks are given.
type inbox struct {
	mu      sync.Mutex // guards below
	windows []WindowReport
	at      []time.Time
	auth    []providerv1.AuthState
	probes  []ProbeReport
}

func (i *inbox) hooks() Hooks {
	return Hooks{
		OnWindows: func(r WindowReport) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.windows, i.at = append(i.windows, r), append(i.at, time.Now())
		},
		OnAuthState: func(_ quota.AccountID, state providerv1.AuthState, _ time.Time) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.auth = append(i.auth, state)
		},
		OnProbe: func(r ProbeReport) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.probes = append(i.probes, r)
		},
	}
}

func (i *inbox) reports() []WindowReport {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.windows)
}

func (i *inbox) probeCount() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.probes)
}

// observing answers Observe with one window whose percentage is the completion.
func observing(_ context.Context, method string, req, reply any) error {
	if method == providerv1.Provider_Observe_FullMethodName {
		reply.(*providerv1.ObserveResponse).Windows = fakeWindows(float64(req.(*providerv1.ObserveRequest).GetCompletion() % 100))
	}
	return nil
}

func observeTest(t *testing.T, test func(t *testing.T, d *desk, in *inbox)) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{}
		d := newDesk(in.hooks())
		d.play(observing)
		d.adopt("{}")
		test(t, d, in)
		d.client.close()
	})
}

func seen(model string, completion uint64, headers ...string) *providerv1.ObserveRequest {
	o := &providerv1.ObserveRequest{Model: model, Completion: completion, Status: 200}
	for i := 0; i < len(headers); i += 2 {
		o.ResponseHeaders = append(o.ResponseHeaders, &providerv1.Header{Name: headers[i], Value: headers[i+1]})
	}
	return o
}

func TestObservationsAreCoalescedToOneASecondNewestFirst(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		for n := range 1000 {
			d.client.Observe("work", seen("opus", uint64(n+1), "x-fake-used", fmt.Sprint(n)), time.Now())
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		reports := in.reports()
		if len(reports) < 10 || len(reports) > 12 {
			t.Errorf("%d reports in 10 s", len(reports))
		}
		if last := reports[len(reports)-1]; last.Completion != 1000 || last.Account.String() != "p/work" {
			t.Errorf("last report %+v", last)
		}
		for i := 1; i < len(in.at); i++ {
			if gap := in.at[i].Sub(in.at[i-1]); gap < time.Second {
				t.Errorf("gap of %v", gap)
			}
			if reports[i].Completion <= reports[i-1].Completion {
				t.Errorf("completion %d after %d", reports[i].Completion, reports[i-1].Completion)
			}
		}
	})
}

func TestObservationsOfDifferentModelsAreKeptApart(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		d.client.Observe("work", seen("opus", 1, "x-fake-used", "1"), time.Now())
		synctest.Wait()
		d.client.Observe("work", seen("opus", 2, "x-fake-used", "2"), time.Now())
		d.client.Observe("work", seen("haiku", 3, "x-fake-used", "3"), time.Now())
		d.client.Observe("work", seen("opus", 4, "x-fake-used", "4"), time.Now())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		var completions []uint64
		for _, r := range in.reports() {
			completions = append(completions, r.Completion)
		}
		if !slices.Equal(completions, []uint64{1, 4, 3}) {
			t.Errorf("reported completions %v", completions)
		}
	})
}

func TestOlderObservationDoesNotReplaceANewerOne(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		d.client.Observe("work", seen("opus", 1, "x-fake-used", "1"), time.Now())
		synctest.Wait()
		d.client.Observe("work", seen("opus", 9, "x-fake-used", "9"), time.Now())
		d.client.Observe("work", seen("opus", 5, "x-fake-used", "5"), time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if reports := in.reports(); len(reports) != 2 || reports[1].Completion != 9 {
			t.Errorf("reports %+v", reports)
		}
	})
}

func TestChangedUrgentHeaderIsObservedAtOnce(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		send := func(completion uint64, status string) time.Time {
			d.client.Observe("work", seen("opus", completion, "x-fake-used", "1", "X-Fake-Status", status), time.Now())
			return time.Now()
		}
		send(1, "allowed")
		synctest.Wait()
		time.Sleep(200 * time.Millisecond)
		send(2, "allowed")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if n := len(in.reports()); n != 1 {
			t.Errorf("unchanged header: %d reports", n)
		}
		at := send(3, "rejected")
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		reports := in.reports()
		if len(reports) != 2 || reports[1].Completion != 3 || in.at[1].Sub(at) != 0 {
			t.Errorf("changed header: %d reports", len(reports))
		}
	})
}

func TestFlipFloppingUrgentHeaderIsBounded(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		for n := range 1000 {
			d.client.Observe("work", seen("opus", uint64(n+1), "x-fake-status", fmt.Sprint(n%2)), time.Now())
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(in.reports()); n > 12 {
			t.Errorf("%d reports in a second", n)
		}
	})
}

func TestObservationWithoutEvidenceIsNotSent(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		d.client.Observe("work", seen("opus", 1), time.Now())
		d.client.Observe("off", seen("opus", 2, "x-fake-used", "1"), time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := d.conn.count(providerv1.Provider_Observe_FullMethodName); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestMergedObservationIsAsOldAsItsOldestPart(t *testing.T) {
	older := observation{seen("opus", 1, "x-fake-used", "1"), testNow}
	older.request.Events = []*providerv1.Event{{Type: "a", Data: []byte("1")}, {Type: "b", Data: []byte("1")}}
	newer := observation{seen("opus", 2), testNow.Add(time.Minute)}
	newer.request.Events = []*providerv1.Event{{Type: "a", Data: []byte("2")}}
	for name, merged := range map[string]observation{"in order": mergeObservations(older, newer), "in disorder": mergeObservations(newer, older)} {
		r := merged.request
		if len(r.GetResponseHeaders()) != 1 || len(r.GetEvents()) != 2 || r.GetCompletion() != 2 || !merged.sentAt.Equal(testNow) {
			t.Errorf("%s: %v sent at %v", name, r, merged.sentAt)
		}
	}
	if len(newer.request.GetResponseHeaders()) != 0 || len(newer.request.GetEvents()) != 1 {
		t.Error("the request of the caller was changed")
	}
	whole := mergeObservations(older, observation{seen("opus", 3, "x-fake-used", "3"), testNow.Add(time.Hour)})
	if whole.request.GetResponseHeaders()[0].GetValue() != "3" || len(whole.request.GetEvents()) != 2 {
		t.Errorf("newer headers with older events: %v", whole.request)
	}
}

func TestCloseDropsWhatWaits(t *testing.T) {
	observeTest(t, func(t *testing.T, d *desk, in *inbox) {
		for n := range 100 {
			d.client.Observe("work", seen(fmt.Sprint("m", n), uint64(n+1), "x-fake-used", "1"), time.Now())
		}
		synctest.Wait()
		began := time.Now()
		d.client.close()
		if took := time.Since(began); took != 0 {
			t.Errorf("close took %v", took)
		}
		d.client.Observe("work", seen("opus", 1, "x-fake-used", "1"), time.Now())
	})
}

// reading answers ReadQuota, after a while.
type reading struct {
	mu    sync.Mutex // guards below
	err   error
	takes time.Duration
	sent  []time.Time
}

func (r *reading) answer(ctx context.Context, method string, _, reply any) error {
	if method != providerv1.Quota_ReadQuota_FullMethodName {
		return nil
	}
	r.mu.Lock()
	r.sent = append(r.sent, time.Now())
	err, takes := r.err, r.takes
	r.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	out := reply.(*providerv1.ReadQuotaResponse)
	out.Windows, out.AuthState = fakeWindows(25), providerv1.AuthState_AUTH_STATE_SIGNED_IN
	return err
}

func (r *reading) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

func probeTest(t *testing.T, r *reading, test func(t *testing.T, d *desk, in *inbox)) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{}
		d := newDesk(in.hooks())
		d.play(r.answer)
		d.adopt("{}", wire.ServiceQuota)
		test(t, d, in)
		d.client.close()
	})
}

func TestQuotaIsProbedAtOnceAndThenAtTheInterval(t *testing.T) {
	r := &reading{takes: 2 * time.Second}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		began := time.Now()
		(*d.client.accounts.Load())["work"].use(began)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := r.count(); n < 12 || n > 14 {
			t.Errorf("%d probes in ten minutes", n)
		}
		first := in.reports()[0]
		if !first.SentAt.Equal(began) || first.Completion != 0 || !first.Readings[0].ObservedAt.Equal(began) {
			t.Errorf("first report %+v, want it as of when it was sent", first)
		}
		if in.auth[0] != providerv1.AuthState_AUTH_STATE_SIGNED_IN || in.probes[0].Err != nil {
			t.Errorf("auth %v, probe %v", in.auth[0], in.probes[0])
		}
	})
}

func TestAccountThatDoesNotServeIsProbedLessOften(t *testing.T) {
	r := &reading{}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(30 * time.Minute)
		if n := r.count(); n < 9 || n > 12 {
			t.Errorf("%d probes in half an hour", n)
		}
	})
}

func TestFailedProbeIsReportedChangesNothingAndBacksOff(t *testing.T) {
	r := &reading{err: status.Error(codes.Internal, "secret text")}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		(*d.client.accounts.Load())["work"].use(time.Now())
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		if n := r.count(); n < 4 || n > 6 {
			t.Errorf("%d probes in twelve minutes of failure", n)
		}
		if len(in.reports()) != 0 || len(in.auth) != 0 {
			t.Error("failure changed something")
		}
		if err := in.probes[0].Err; !errors.Is(err, ErrFailed) || err.Error() != "ReadQuota: adapter reports failure: Internal" {
			t.Errorf("probe: %v", err)
		}
	})
}

func TestAFailedProbeTellsTheSentenceThatIsForTheUser(t *testing.T) {
	r := &reading{err: status.Error(codes.FailedPrecondition, "the client\x1b[2J is "+canary)}
	probeTest(t, r, func(t *testing.T, _ *desk, in *inbox) {
		time.Sleep(time.Minute)
		synctest.Wait()
		var reported *ReportedError
		if err := in.probes[0].Err; !errors.As(err, &reported) || !errors.Is(err, ErrFailed) || reported.Reason != "the client?[2J is [redacted]" {
			t.Errorf("probe: %v", err)
		}
	})
}

func TestRefreshMakesOneNewProbeForAllWhoAsk(t *testing.T) {
	r := &reading{takes: time.Second}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(500 * time.Millisecond) // the first probe is under way and too old for those who ask now
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if err := d.client.RefreshQuota(context.Background(), "work"); err != nil {
					t.Errorf("refresh: %v", err)
				}
			})
		}
		callers.Wait()
		if r.count() != 2 {
			t.Errorf("%d probes", r.count())
		}
		if gap := r.sent[1].Sub(r.sent[0]); gap != time.Second {
			t.Errorf("second probe %v after the first: never two at a time", gap)
		}
	})
}

func TestChangedConfigurationIsProbedAtOnceAndARestartIsNot(t *testing.T) {
	r := &reading{takes: time.Second}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(500 * time.Millisecond) // a probe of the old configuration is under way
		d.adopt(`{"other":1}`, wire.ServiceQuota)
		time.Sleep(1500 * time.Millisecond)
		if n := r.count(); n != 2 {
			t.Errorf("%d probes after the configuration changed, want one of the old and one of the new", n)
		}
		d.client.adopt(nil)
		d.adopt(`{"other":1}`, wire.ServiceQuota)
		time.Sleep(2 * time.Second)
		if n := r.count(); n != 2 {
			t.Errorf("%d probes after a restart", n)
		}
	})
}

func TestProbeThatHangsEndsAtItsDeadline(t *testing.T) {
	r := &reading{takes: time.Hour}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		time.Sleep(15*time.Second + time.Millisecond)
		synctest.Wait()
		if in.probeCount() != 1 || !errors.Is(in.probes[0].Err, ErrAway) {
			t.Errorf("probes %v", in.probes)
		}
	})
}

func TestNoProbeIsDueWhileTheAdapterIsAwayOrReadsNoQuota(t *testing.T) {
	r := &reading{}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		synctest.Wait()
		d.client.adopt(nil)
		time.Sleep(time.Hour)
		if err := d.client.RefreshQuota(context.Background(), "work"); !errors.Is(err, ErrAway) {
			t.Errorf("refresh: %v", err)
		}
		d.adopt("{}")
		time.Sleep(time.Hour)
		if err := d.client.RefreshQuota(context.Background(), "work"); !errors.Is(err, ErrNotOffered) {
			t.Errorf("refresh: %v", err)
		}
		if r.count() != 1 {
			t.Errorf("%d probes", r.count())
		}
		d.adopt("{}", wire.ServiceQuota)
		synctest.Wait()
		time.Sleep(5 * time.Minute)
		if r.count() < 2 {
			t.Error("no probe after the adapter is back")
		}
	})
}

func TestProbeOfARemovedAccountEnds(t *testing.T) {
	r := &reading{}
	probeTest(t, r, func(t *testing.T, d *desk, in *inbox) {
		synctest.Wait()
		d.client.withdraw()
		before := r.count()
		time.Sleep(time.Hour)
		if r.count() != before {
			t.Errorf("%d probes after the account left", r.count()-before)
		}
		if err := d.client.RefreshQuota(context.Background(), "work"); !errors.Is(err, ErrUnknown) {
			t.Errorf("refresh: %v", err)
		}
	})
}

func TestWindowsOfAFailureThatRejectsNothingAreReported(t *testing.T) {
	cases := []struct {
		name    string
		outcome providerv1.Outcome
		scope   providerv1.Scope
		reports int
	}{
		{"overloaded", providerv1.Outcome_OUTCOME_OVERLOADED, providerv1.Scope_SCOPE_PROVIDER, 1},
		{"rejected: they go with the rejection", providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, providerv1.Scope_SCOPE_ACCOUNT, 0},
		{"an answer that contradicts itself", providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, providerv1.Scope_SCOPE_PROVIDER, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := &inbox{}
			d := newDesk(in.hooks())
			defer d.client.close()
			d.play(func(_ context.Context, method string, _, reply any) error {
				if answer, ok := reply.(*providerv1.ClassifyResponse); ok {
					answer.Outcome, answer.Scope, answer.Windows = c.outcome, c.scope, fakeWindows(7)
				}
				return nil
			})
			d.adopt("{}")
			v, err := d.client.Classify(t.Context(), "work", &providerv1.ClassifyRequest{Status: 429}, time.Now())
			must(t, err)
			if got := len(in.reports()); got != c.reports || got+len(v.Rejection.Windows) > 1 {
				t.Errorf("%d reports, %d windows of a rejection", got, len(v.Rejection.Windows))
			}
		})
	}
}
