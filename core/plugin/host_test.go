package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestAdapterServesFromStartToClose(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Mark: "one"}))
	lease, err := b.client().Lease(t.Context(), "work")
	must(t, err)
	if lease.Generation != "login-one" {
		t.Errorf("generation = %q", lease.Generation)
	}
	info := b.info()
	if info.State != StateReady || info.PID == 0 || info.Version != "1.2.3" || info.Accounts != 1 || info.Digest != DigestOK {
		t.Errorf("info = %+v", info)
	}
	b.close()
	if entries, _ := os.ReadDir(filepath.Join(b.dir, "run")); len(entries) != 0 {
		t.Errorf("run directory still holds %v", entries)
	}
}

func TestConfigurationIsSwappedWithoutAGap(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Mark: "one"}))
	first, client := b.info().PID, b.client()
	stop, calls := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(calls)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := client.Unavailable(context.Background(), &providerv1.UnavailableRequest{}); err != nil {
				calls <- err
				return
			}
		}
	}()
	for _, mark := range []string{"two", "three", "four"} {
		b.ready(b.fake(fakeConfig{Mark: mark}))
		lease, err := b.client().Lease(t.Context(), "work")
		if err != nil || lease.Generation != "login-"+mark {
			t.Errorf("lease after the swap to %s: %q, %v", mark, lease.Generation, err)
		}
	}
	close(stop)
	if err := <-calls; err != nil {
		t.Errorf("call during a swap: %v", err)
	}
	if info := b.info(); info.PID == first || info.Restarts != 0 {
		t.Errorf("pid %d after %d, restarts %d", info.PID, first, info.Restarts)
	}
}

func TestRefusedConfigurationLeavesTheLastGoodOne(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Mark: "good"}))
	pid := b.info().PID
	bad := b.fake(fakeConfig{Refuse: true})
	var f *Failure
	if err := b.apply(bad); !errors.As(err, &f) || f.Reason != ReasonConfig || f.Diagnostics[0].Attribute != "endpoint" {
		t.Fatalf("apply: %v", err)
	}
	if info := b.info(); info.State != StateReady || info.PID != pid || info.Failure == nil {
		t.Errorf("after the refusal: %+v", info)
	}
	if lease, err := b.client().Lease(t.Context(), "work"); err != nil || lease.Generation != "login-good" {
		t.Errorf("lease: %q, %v", lease.Generation, err)
	}
}

func TestConfigurationIsValidatedWithoutBeingApplied(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	good, bad := b.fake(fakeConfig{Mark: "good"}), b.fake(fakeConfig{Refuse: true})
	check := func(when string) {
		t.Helper()
		if found, err := b.host.Validate(t.Context(), good); err != nil || len(found) != 0 {
			t.Errorf("%s, good one: %v, %v", when, found, err)
		}
		if found, err := b.host.Validate(t.Context(), bad); err != nil || len(found) != 1 || found[0].Summary != "endpoint is missing" {
			t.Errorf("%s, bad one: %v, %v", when, found, err)
		}
	}
	check("not running")
	b.ready(good)
	pid := b.info().PID
	check("running")
	if b.info().PID != pid {
		t.Error("validation started another process")
	}
}

func TestProfileThatTheHostCannotUseFailsTheStartForGood(t *testing.T) {
	b := newBench(t, quick(), Hooks{OnProfile: func(string, *providerv1.Profile) error { return errors.New("compile profile: bad pattern") }})
	var f *Failure
	if err := b.apply(b.fake(fakeConfig{})); !errors.As(err, &f) || f.Reason != ReasonProfile || !f.Permanent || f.Detail != "compile profile: bad pattern" {
		t.Errorf("apply: %v", err)
	}
}

func TestAdapterForAnotherProviderIsRefused(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{})
	spec.Provider = "other"
	var f *Failure
	if err := b.apply(spec); !errors.As(err, &f) || f.Reason != ReasonIdentity || !f.Permanent {
		t.Errorf("apply: %v", err)
	}
}

// Its requests would go out unsigned.
func TestAdapterThatSignsIsRefused(t *testing.T) {
	for _, at := range []string{"Init", "Describe"} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t, quick(), Hooks{})
			var f *Failure
			if err := b.apply(b.fake(fakeConfig{}, "signs="+at)); !errors.As(err, &f) || f.Reason != ReasonSigner || !f.Permanent {
				t.Errorf("apply: %v", err)
			}
		})
	}
}

func TestSpecsThatCannotBeToldApartAreRefused(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{})
	spec.Disabled = true
	twin, rival, nameless := spec, spec, spec
	rival.Name, nameless.Name = "rival", "../x"
	results := b.host.Apply(t.Context(), []Spec{spec, twin, rival, nameless})
	for i, want := range []bool{true, false, false, false} {
		if (results[i].Err == nil) != want {
			t.Errorf("%s: %v", results[i].Name, results[i].Err)
		}
	}
}

func TestCrashedAdapterSaysHowItEnded(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"CheckAuth": actExit}}))
	if _, err := b.client().CheckAuth(t.Context(), "work"); !errors.Is(err, ErrAway) {
		t.Errorf("CheckAuth: %v", err)
	}
	lost := b.awaitState("backoff", in(StateBackoff))
	if lost.Failure.Reason != ReasonExited || lost.Failure.Exit != "exit status 7" || lost.RetryAt.IsZero() || lost.PID != 0 {
		t.Errorf("lost: %+v", lost)
	}
	if again := b.awaitState("ready", in(StateReady)); again.Restarts != 1 {
		t.Errorf("restarts %d", again.Restarts)
	}
}

func TestRestartByHandStartsAnAdapterThatFailedForGood(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{})
	text, err := os.ReadFile(spec.Path)
	must(t, err)
	must(t, os.WriteFile(spec.Path, append(text, '#'), 0o700))
	var f *Failure
	if err := b.apply(spec); !errors.As(err, &f) || f.Reason != ReasonDigestMismatch {
		t.Fatalf("apply: %v", err)
	}
	must(t, os.Remove(spec.Path)) // what is listed was seen when it was started
	if info := b.info(); info.State != StateFailed || info.Digest != DigestMismatch || info.SHA256 != digestOfText(string(text)+"#") {
		t.Errorf("info %+v", info)
	}
	must(t, os.WriteFile(spec.Path, text, 0o700))
	must(t, b.host.Restart(t.Context(), "fake"))
	if info := b.info(); info.State != StateReady || info.Digest != DigestOK || info.Source != "plugins/noria-provider-fake" {
		t.Errorf("info %+v", info)
	}
	if err := b.host.Restart(t.Context(), "none"); !errors.Is(err, ErrUnknown) {
		t.Errorf("restart of an unknown one: %v", err)
	}
}

func TestDevWaivesTheDigestSaysSoAndSeesNewBinaries(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{})
	spec.SHA256, spec.Dev = "", true
	b.ready(spec)
	if info := b.info(); info.Digest != DigestDev || !info.Dev {
		t.Errorf("info %+v", info)
	}
	if !strings.Contains(b.log.String(), "adapter is not checked") {
		t.Error("no warning")
	}
	first := b.info().PID
	b.ready(spec)
	if b.info().PID != first {
		t.Error("same file, another process")
	}
	b.script("noria-provider-fake", fakeScript(t, "print=rebuilt"))
	b.ready(spec)
	if b.info().PID == first {
		t.Error("new file, same process")
	}
}

func TestProviderThatIsRemovedIsUnknownAndItsProcessGone(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{}))
	c, pid := b.client(), b.info().PID
	b.ready()
	if _, err := b.host.Client("fake"); !errors.Is(err, ErrUnknown) {
		t.Errorf("client: %v", err)
	}
	if _, err := c.Lease(t.Context(), "work"); !errors.Is(err, ErrUnknown) {
		t.Errorf("lease of the old client: %v", err)
	}
	if !gone(pid) || len(b.host.List()) != 0 {
		t.Errorf("process %d gone: %v, list %v", pid, gone(pid), b.host.List())
	}
}

func TestAnswersOfARealAdapterArriveChecked(t *testing.T) {
	in := &inbox{}
	b := newBench(t, quick(), in.hooks())
	b.ready(b.fake(fakeConfig{}))
	c := b.client()
	v, err := c.Classify(t.Context(), "work", &providerv1.ClassifyRequest{Status: 429}, time.Now())
	if err != nil || v.Rejection.Cause != quota.CauseQuota || v.Rejection.WindowID != "5h" {
		t.Errorf("classify: %+v, %v", v, err)
	}
	if status, err := c.CheckAuth(t.Context(), "off"); err != nil || !status.Eligible {
		t.Errorf("check of a disabled account: %+v, %v", status, err)
	}
	if _, err := c.CheckAuth(t.Context(), "stranger"); !errors.Is(err, ErrUnknown) {
		t.Errorf("check of an unknown account: %v", err)
	}
	if _, err := c.LoginCommand(t.Context(), "work"); !errors.Is(err, ErrNotOffered) {
		t.Errorf("login command: %v", err)
	}
	if _, err := c.ListModels(t.Context(), "work"); !errors.Is(err, ErrNotOffered) {
		t.Errorf("models: %v", err)
	}
	must(t, b.host.RefreshQuota(t.Context(), quota.AccountID{Provider: "fake", Name: "work"}))
	if reports := in.reports(); len(reports) == 0 || reports[0].Readings[0].UsedPercent != 25 {
		t.Errorf("reports %+v", reports)
	}
}

func TestAdapterOfAnotherMinorServes(t *testing.T) {
	for _, minor := range []string{"first", "later"} {
		t.Run(minor, func(t *testing.T) {
			b := newBench(t, quick(), Hooks{})
			spec := b.fake(fakeConfig{Mark: "m"}, "minor="+minor)
			b.ready(spec)
			c := b.client()
			lease, err := c.Lease(t.Context(), "work")
			if err != nil || lease.Generation != "login-m" {
				t.Errorf("lease %q, %v", lease.Generation, err)
			}
			v, err := c.Classify(t.Context(), "work", &providerv1.ClassifyRequest{Status: 429}, time.Now())
			if err != nil || v.Outcome != providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED {
				t.Errorf("verdict %+v, %v", v, err)
			}
			// The first minor had no optional services; a later one has some that this host does not know.
			wanted := map[string]error{"first": ErrNotOffered, "later": nil}[minor]
			if _, err := c.CheckAuth(t.Context(), "work"); !errors.Is(err, wanted) {
				t.Errorf("CheckAuth: %v, want %v", err, wanted)
			}
			if found, err := b.host.Validate(t.Context(), b.spec(spec.Path, fakeConfig{Refuse: true})); err != nil || len(found) != 1 {
				t.Errorf("validate: %v, %v", found, err)
			}
			if d, err := b.host.Describe(t.Context(), spec); err != nil || d.GetVersion() != "1.2.3" {
				t.Errorf("describe: %v, %v", d, err)
			}
		})
	}
}

func TestCallIsGivenUpAtItsDeadline(t *testing.T) {
	timing := quick()
	timing.classify = 100 * time.Millisecond
	b := newBench(t, timing, Hooks{})
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"Classify": actHang}}))
	if _, err := b.client().Classify(t.Context(), "work", &providerv1.ClassifyRequest{}, time.Now()); !errors.Is(err, ErrAway) {
		t.Errorf("classify: %v", err)
	}
	if b.info().State != StateReady {
		t.Error("one slow call ended the adapter")
	}
}

func TestFloodOfAWatchIsPaced(t *testing.T) {
	in := &inbox{}
	timing := quick()
	timing.observeEvery = 50 * time.Millisecond
	got := make(chan struct{}, 100)
	hooks := in.hooks()
	take := hooks.OnWindows
	hooks.OnWindows = func(r WindowReport) { take(r); got <- struct{}{} }
	began := time.Now()
	b := newBench(t, timing, hooks)
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"WatchQuota": actFlood, "ReadQuota": actError}}))
	for range 10 {
		<-got
	}
	reports := in.reports()
	for _, r := range reports {
		if r.Account.Name != "work" {
			t.Errorf("report about %s", r.Account)
		}
	}
	// The pace is of when they are handed over; a busy machine makes it slower, never faster.
	if most := 1 + int(time.Since(began)/timing.observeEvery); len(reports) > most {
		t.Errorf("%d reports, want at most %d in that time", len(reports), most)
	}
}

func TestClosedHostRunsNothing(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{})
	b.close()
	if err := b.apply(spec); !errors.Is(err, ErrClosed) {
		t.Errorf("apply: %v", err)
	}
	if _, err := b.host.Validate(t.Context(), spec); !errors.Is(err, ErrClosed) {
		t.Errorf("validate: %v", err)
	}
	if err := b.host.Close(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

func TestCloseEndsAndAwaitsValidations(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	begun := filepath.Join(b.dir, "begun")
	spec := b.spec(b.script("noria-provider-fake", fmt.Sprintf("#!/bin/sh\necho $$ >%s.new\nmv %s.new %s\nexec sleep 600\n", begun, begun, begun)), fakeConfig{})
	answered := make(chan error, 1)
	go func() {
		_, err := b.host.Validate(context.Background(), spec)
		answered <- err
	}()
	var pid int
	b.eventually("asks a plugin that was started for it", func() bool {
		text, err := os.ReadFile(begun)
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return err == nil
	})
	b.close()
	if !gone(pid) {
		t.Errorf("the host is closed and process %d is left", pid)
	}
	if err := <-answered; !errors.Is(err, ErrClosed) {
		t.Errorf("validate: %v", err)
	}
}

func TestCloseKillsWhatDoesNotDrainInTime(t *testing.T) {
	timing := quick()
	timing.drain = time.Minute
	b := newBench(t, timing, Hooks{})
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"Drain": actHang}}))
	pid := b.info().PID
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, b.host.Close(ctx))
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
}
