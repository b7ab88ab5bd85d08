package proxy

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/internal/upstream"
	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// late is what a lease that does not come is to the proxy.
func late(account quota.AccountID) error {
	return &LeaseRefusedError{
		Code:   providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY,
		Reason: fmt.Sprintf("the credential of %s did not come within 5s: see what its command waits for", account),
	}
}

// pausingRig is a rig over the real state, on a clock that stands.
func pausingRig(t *testing.T) (*rig, *state.Store) {
	t.Helper()
	log := state.NewMemoryLog(true)
	store := openStoreOn(t, log)
	return newRig(t, func(r *rig, o *Options) {
		r.clock = clock.NewFake(time.Now())
		o.State, o.Clock = store, r.clock
	}), store
}

func (r *rig) refuse(account quota.AccountID, err error) {
	r.adapters.mu.Lock()
	defer r.adapters.mu.Unlock()
	r.adapters.refused[account] = err
}

func (r *rig) leasesWanted(account quota.AccountID) int {
	r.adapters.mu.Lock()
	defer r.adapters.mu.Unlock()
	return r.adapters.wanted[account]
}

// lastAsked is what the adapter was last asked to shape.
func (r *rig) lastAsked() *providerv1.UnavailableRequest {
	r.adapters.mu.Lock()
	defer r.adapters.mu.Unlock()
	if len(r.adapters.asked) == 0 {
		return nil
	}
	return r.adapters.asked[len(r.adapters.asked)-1]
}

func (r *rig) wantCauses(t *testing.T, want map[providerv1.Cause]int) {
	t.Helper()
	got := map[providerv1.Cause]int{}
	for _, c := range r.lastAsked().GetCauses() {
		got[c.GetCause()] = int(c.GetAccounts())
	}
	if !maps.Equal(got, want) {
		t.Errorf("causes %v, want %v", got, want)
	}
}

func TestACredentialThatDoesNotComePausesItsAccountOnly(t *testing.T) {
	t.Run("a new session is served by another account and lives there", func(t *testing.T) {
		r, store := pausingRig(t)
		r.refuse(claudeA, late(claudeA))
		wantServed(t, r.do(turn("s1")))
		home := accountOf(t, store, "claude/s1")
		if home == "a" || r.accountsOf() != home {
			t.Errorf("turns reached %q, the session lives on %q, want one account other than a", r.accountsOf(), home)
		}
		if got := r.events.of("failover"); len(got) != 1 || got[0].From != "a" || got[0].Account != home || got[0].Reason != "credential" {
			t.Errorf("failovers %+v, want one away from a", got)
		}
	})
	t.Run("the next requests do not wait for it while others can serve", func(t *testing.T) {
		r, _ := pausingRig(t)
		r.refuse(claudeA, late(claudeA))
		for _, session := range []string{"s1", "s2", "s3", "s4", "s5"} {
			wantServed(t, r.do(turn(session)))
		}
		if got := r.leasesWanted(claudeA); got != 1 {
			t.Errorf("the lease of a was waited for %d times, want once", got)
		}
	})
	t.Run("a session that lives there makes detours, and is back when the credential came", func(t *testing.T) {
		r, store := pausingRig(t)
		wantServed(t, r.do(turn("s1")))
		home := quota.AccountID{Provider: "claude", Name: accountOf(t, store, "claude/s1")}
		r.refuse(home, late(home))
		for range 3 {
			wantServed(t, r.do(turn("s1")))
			if got := accountOf(t, store, "claude/s1"); got != home.Name {
				t.Fatalf("the session moved to %s", got)
			}
		}
		if got := r.leasesWanted(home); got != 2 {
			t.Errorf("the lease was asked for %d times, want once when it was there and once when it was late", got)
		}
		if got := r.events.of("detour"); len(got) != 3 || got[0].From != home.Name {
			t.Errorf("detours %+v, want three", got)
		}
		r.refuse(home, nil)
		store.CredentialCame(home)
		r.upstream.Forget()
		wantServed(t, r.do(turn("s1")))
		if got := r.accountsOf(); got != home.Name {
			t.Errorf("served by %q, want %s again", got, home.Name)
		}
	})
	t.Run("a further model of such a session binds nowhere else", func(t *testing.T) {
		r, store := pausingRig(t)
		wantServed(t, r.do(turn("s1")))
		home := quota.AccountID{Provider: "claude", Name: accountOf(t, store, "claude/s1")}
		r.refuse(home, late(home))
		c := turn("s1")
		c.body = strings.Replace(c.body, testModel, "claude-haiku-5", 1)
		wantServed(t, r.do(c))
		if session, _ := store.Session("claude/s1"); len(session.Bindings) != 1 {
			t.Errorf("bindings %+v, want the one on %s", session.Bindings, home)
		}
	})
	t.Run("when no other can serve, it is asked for again", func(t *testing.T) {
		r, _ := pausingRig(t)
		for _, a := range []quota.AccountID{claudeA, claudeB, claudeC} {
			r.refuse(a, late(a))
		}
		r.do(turn("s1"))
		r.refuse(claudeB, nil)
		wantServed(t, r.do(turn("s1")))
		if got := r.accountsOf(); got != "b" {
			t.Errorf("turns reached %q, want b", got)
		}
	})
	t.Run("a renewal that does not come is no different", func(t *testing.T) {
		r, store := pausingRig(t)
		wantServed(t, r.do(turn("s1")))
		home := quota.AccountID{Provider: "claude", Name: accountOf(t, store, "claude/s1")}
		r.upstream.Script(home.Name, upstream.Unauthorized())
		r.adapters.refresh = func(quota.AccountID, wire.Lease) (wire.Lease, error) { return wire.Lease{}, late(home) }
		wantServed(t, r.do(turn("s1")))
		view, err := store.AccountByID(home, r.clock.Now())
		if err != nil || len(view.Blockers) != 0 || len(view.Cooldowns) != 1 || view.Cooldowns[0].Cause != quota.CauseCredential {
			t.Errorf("blockers %v, pauses %v, %v, want a pause for the want of a credential", view.Blockers, view.Cooldowns, err)
		}
		if got := accountOf(t, store, "claude/s1"); got != home.Name {
			t.Errorf("the session moved to %s", got)
		}
	})
}

func TestAnswersNameTheAccountsWhoseCredentialDidNotCome(t *testing.T) {
	const why = "(the credential of claude/a did not come within 5s: see what its command waits for)"
	tests := []struct {
		name  string
		setUp func(r *rig)
		words []string
		cause map[providerv1.Cause]int
	}{
		{"the only account", func(r *rig) {
			r.state.accounts = []quota.AccountID{claudeA}
		}, []string{"Your claude account cannot serve this request: it cannot get its credential now " + why + ". Try again."},
			map[providerv1.Cause]int{providerv1.Cause_CAUSE_CREDENTIAL: 1}},
		{"beside one that is exhausted", func(r *rig) {
			r.state.accounts = []quota.AccountID{claudeA, claudeB}
			r.state.blockers[claudeB] = []quota.Rejection{{Cause: quota.CauseQuota, ClearsAt: resets}}
		}, []string{"None of your 2 claude accounts", "1 has used up its quota, 1 cannot get its credential now " + why + ". The next one"},
			map[providerv1.Cause]int{providerv1.Cause_CAUSE_QUOTA: 1, providerv1.Cause_CAUSE_CREDENTIAL: 1}},
		{"beside one that is disabled", func(r *rig) {
			r.state.accounts = []quota.AccountID{claudeA, claudeB}
			r.state.disabled = map[quota.AccountID]bool{claudeB: true}
		}, []string{"None of your 2 claude accounts", "1 cannot get its credential now " + why + ", 1 is disabled. Try again."},
			map[providerv1.Cause]int{providerv1.Cause_CAUSE_CREDENTIAL: 1, providerv1.Cause_CAUSE_DISABLED: 1}},
		{"no more than three of many", func(r *rig) {
			for _, name := range []string{"d", "e"} {
				r.state.accounts = append(r.state.accounts, quota.AccountID{Provider: "claude", Name: name})
			}
			for _, a := range r.state.accounts {
				r.refuse(a, late(a))
			}
		}, []string{"None of your 5 claude accounts", "5 cannot get their credential now (the credential of claude/a", "the credential of claude/c did not come within 5s: see what its command waits for)."},
			map[providerv1.Cause]int{providerv1.Cause_CAUSE_CREDENTIAL: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.refuse(claudeA, late(claudeA))
			tt.setUp(r)
			got := r.do(turn("s1"))
			wantOwn(t, got, 503, tt.words...)
			r.wantCauses(t, tt.cause)
			if got.header.Get("anthropic-ratelimit-unified-reset") != "" {
				t.Error("the answer looks like a usage limit")
			}
		})
	}
}

func TestAnAdapterThatIsAwayTriesNoOtherAccount(t *testing.T) {
	r, store := pausingRig(t)
	for _, a := range []quota.AccountID{claudeA, claudeB, claudeC} {
		r.refuse(a, fmt.Errorf("wait for lease: %w", ErrAdapterAway))
	}
	wantOwn(t, r.do(turn("s1")), 503, "the claude adapter is not ready")
	asked := 0
	for _, a := range []quota.AccountID{claudeA, claudeB, claudeC} {
		asked += r.leasesWanted(a)
	}
	if asked != 1 {
		t.Errorf("%d leases were waited for, want one", asked)
	}
	for _, view := range store.Accounts(r.clock.Now()) {
		if len(view.Cooldowns)+len(view.Blockers) > 0 {
			t.Errorf("%s pauses for the adapter's fault: %v %v", view.ID, view.Cooldowns, view.Blockers)
		}
	}
}

func TestTheNetworkIsSaidToBeTheTrouble(t *testing.T) {
	const sentence = "Noria could not reach the claude service over the network. Nothing was moved. Try again."
	network := func(n int) map[providerv1.Cause]int {
		return map[providerv1.Cause]int{providerv1.Cause_CAUSE_NETWORK: n}
	}
	t.Run("at once to a session that is bound, which stays", func(t *testing.T) {
		r, store := pausingRig(t)
		wantServed(t, r.do(turn("s1")))
		home := accountOf(t, store, "claude/s1")
		r.closeUpstream(t)
		for range 3 {
			wantOwn(t, r.do(turn("s1")), 503, sentence)
			r.wantCauses(t, network(1))
		}
		if got := accountOf(t, store, "claude/s1"); got != home {
			t.Errorf("the session moved to %s", got)
		}
	})
	t.Run("to a new session once no account reaches it, from the first failure on", func(t *testing.T) {
		r, _ := pausingRig(t)
		r.closeUpstream(t)
		for range 4 {
			wantOwn(t, r.do(turn("s1")), 503, sentence)
			r.wantCauses(t, network(3))
			if at := r.lastAsked().GetForecastAt(); at != nil {
				t.Errorf("forecast %v, want none: our own pause is no time of the upstream's", at.AsTime())
			}
		}
	})
	t.Run("to what is no turn as well", func(t *testing.T) {
		r, _ := pausingRig(t)
		r.closeUpstream(t)
		wantOwn(t, r.do(count("s1")), 503, sentence)
		r.wantCauses(t, network(1))
	})
	t.Run("beside an exhausted account, whose time is then a bound", func(t *testing.T) {
		r, _ := pausingRig(t)
		reset := r.clock.Now().Add(time.Hour).Truncate(time.Second)
		r.upstream.Script("a", upstream.Quota("five_hour", reset))
		for _, token := range []string{"b", "c"} {
			r.upstream.Script(token, upstream.CutBeforeStatus())
		}
		got := r.do(turn("s1"))
		wantOwn(t, got, 503, "1 has used up its quota, 2 cannot reach the service over the network. The next one is free no later than")
		r.wantCauses(t, map[providerv1.Cause]int{providerv1.Cause_CAUSE_QUOTA: 1, providerv1.Cause_CAUSE_NETWORK: 2})
		if kind := r.lastAsked().GetForecastKind(); kind != providerv1.ForecastKind_FORECAST_KIND_NO_LATER_THAN {
			t.Errorf("forecast %v, want a bound", kind)
		}
	})
	t.Run("when it ended the whole search", func(t *testing.T) {
		r := newRig(t, withLimits(Limits{Attempts: 2}))
		r.closeUpstream(t)
		wantOwn(t, r.do(turn("s1")), 503, sentence)
		r.wantCauses(t, network(2))
	})
}

// closeUpstream gives every account an upstream that refuses connections.
func (r *rig) closeUpstream(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r.adapters.mu.Lock()
	defer r.adapters.mu.Unlock()
	for account := range r.adapters.bases {
		r.adapters.bases[account] = closed
	}
}

func TestARedirectIsNotSaidToBeTheNetwork(t *testing.T) {
	r := newRig(t)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"))
	})
	wantOwn(t, r.do(turn("s1")), 503, "sends this request elsewhere (HTTP 307)")
	r.wantCauses(t, map[providerv1.Cause]int{providerv1.Cause_CAUSE_TRIED: 1})
}

func TestCausesOfAForecast(t *testing.T) {
	for word, cause := range map[string]providerv1.Cause{
		string(quota.CauseQuota): providerv1.Cause_CAUSE_QUOTA, string(quota.CauseAuth): providerv1.Cause_CAUSE_AUTH,
		string(quota.CauseNotEntitled): providerv1.Cause_CAUSE_NOT_ENTITLED, placement.FilteredModel: providerv1.Cause_CAUSE_NOT_ENTITLED,
		placement.FilteredDisabled: providerv1.Cause_CAUSE_DISABLED, string(quota.CauseThrottle): providerv1.Cause_CAUSE_THROTTLED,
		string(quota.CauseNetwork): providerv1.Cause_CAUSE_NETWORK, string(quota.CauseCredential): providerv1.Cause_CAUSE_CREDENTIAL,
		placement.FilteredTried: providerv1.Cause_CAUSE_TRIED,
	} {
		if got := causeCounts(map[string]int{word: 2}); got[cause] != 2 || len(got) != 1 {
			t.Errorf("%s: %v, want %v", word, got, cause)
		}
	}
}

func TestEveryCauseHasItsWords(t *testing.T) {
	x := &exchange{provider: "claude"}
	none := x.causeSentence(nil)
	for number := range providerv1.Cause_name {
		cause := providerv1.Cause(number)
		if cause == providerv1.Cause_CAUSE_UNSPECIFIED || cause == providerv1.Cause_CAUSE_ADAPTER_AWAY {
			continue
		}
		for _, n := range []int{1, 2} {
			if got := x.causeSentence(map[providerv1.Cause]int{cause: n}); got == none {
				t.Errorf("%v of %d accounts is told as nothing", cause, n)
			}
		}
	}
}

func TestForecastSentencesTellWhatToDo(t *testing.T) {
	r := newRig(t, func(r *rig, o *Options) { o.Clock, o.Location = r.clock, time.UTC })
	x := &exchange{provider: "claude", proxy: r.proxy}
	at := r.clock.Now().Add(time.Hour)
	for _, tt := range []struct {
		rule     string
		cause    providerv1.Cause
		forecast placement.Forecast
		want     string
	}{
		{"a sign-in is asked for", providerv1.Cause_CAUSE_AUTH, placement.Forecast{}, "Sign in again with noria connect claude/NAME."},
		{"a sign-in of the only account that needs one", providerv1.Cause_CAUSE_AUTH,
			placement.Forecast{Account: quota.AccountID{Provider: "claude", Name: "work"}}, "Sign in again with noria connect claude/work."},
		{"the network is worth another try", providerv1.Cause_CAUSE_NETWORK, placement.Forecast{}, "Try again."},
		{"so is a late credential", providerv1.Cause_CAUSE_CREDENTIAL, placement.Forecast{}, "Try again."},
		{"so is a throttle without a time", providerv1.Cause_CAUSE_THROTTLED, placement.Forecast{}, "Try again."},
		{"what is off can be enabled", providerv1.Cause_CAUSE_DISABLED, placement.Forecast{}, "Enable one with noria accounts enable claude/NAME."},
		{"a quota without a time is not", providerv1.Cause_CAUSE_QUOTA, placement.Forecast{}, "It is not known when that changes. See noria status."},
		{"an authoritative time is exact", providerv1.Cause_CAUSE_QUOTA, placement.Forecast{Kind: placement.ForecastExact, At: at}, "The next one is free at 04:00 UTC, in 1 h 0 min."},
		{"any other is a bound", providerv1.Cause_CAUSE_NETWORK, placement.Forecast{Kind: placement.ForecastNoLaterThan, At: at}, "The next one is free no later than 04:00 UTC, in 1 h 0 min."},
	} {
		if got := x.forecastSentence(map[providerv1.Cause]int{tt.cause: 1}, tt.forecast); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.rule, got, tt.want)
		}
	}
}

func TestALateCredentialForWhatIsNoTurnIsNotASignIn(t *testing.T) {
	r := newRig(t)
	r.refuse(claudeA, late(claudeA))
	wantOwn(t, r.do(count("s1")), 503, "Noria cannot use the account claude/a now: the credential of claude/a did not come within 5s")
	r.wantCauses(t, map[providerv1.Cause]int{providerv1.Cause_CAUSE_CREDENTIAL: 1})
	if got := r.events.of("request"); len(got) != 1 || got[0].Outcome != "unavailable" || got[0].Reason != "credential" {
		t.Errorf("events %+v, want a credential that did not come", got)
	}
}
