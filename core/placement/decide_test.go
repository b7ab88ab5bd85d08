package placement

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

const (
	fiveHours = 5 * time.Hour
	week      = 7 * 24 * time.Hour
)

var now = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

func declare() []quota.Declaration {
	return []quota.Declaration{
		{ID: "5h", Kind: quota.KindRolling, Length: fiveHours},
		{ID: "weekly", Kind: quota.KindWeekly, Length: week},
	}
}

func id(name string) quota.AccountID { return quota.AccountID{Provider: "claude", Name: name} }

// unread is an account with two windows that were never read.
func unread(name string) *quota.Account {
	a := quota.NewAccount(id(name), nil, nil, nil)
	a.Enabled = true
	a.Declare(declare())
	return a
}

// read is an account whose windows were read just now: percent used, hours to the reset (0: not known).
func read(name string, short, shortHours, weekly, weeklyHours float64) *quota.Account {
	a := unread(name)
	see(a, "5h", short, shortHours, now)
	see(a, "weekly", weekly, weeklyHours, now)
	return a
}

func see(a *quota.Account, window string, used, hours float64, at time.Time) {
	r := quota.Reading{
		Declaration: a.Window(window).Declaration, UsedPercent: used, HasUsed: true,
		State: quota.Observed, Source: quota.SourceOfficialClient, ObservedAt: at,
	}
	if hours > 0 {
		r.ResetsAt = at.Add(time.Duration(hours * float64(time.Hour)))
	}
	a.Observe([]quota.Reading{r}, at)
}

func blocked(a *quota.Account, r quota.Rejection) *quota.Account {
	a.Reject(r, "m", now, now)
	return a
}

func with(a *quota.Account, change func(*quota.Account)) *quota.Account {
	change(a)
	return a
}

var (
	quotaGone = quota.Rejection{Cause: quota.CauseQuota, WindowID: "weekly", ClearsAt: now.Add(50 * time.Hour)}
	signedOut = quota.Rejection{Cause: quota.CauseAuth}
	throttled = quota.Rejection{Cause: quota.CauseThrottle, RetryAfter: 10 * time.Second}
	guessed   = quota.Rejection{Cause: quota.CauseThrottle}
	late      = quota.Rejection{Cause: quota.CauseCredential}
	cutOff    = quota.Rejection{Cause: quota.CauseNetwork}
)

func request() Request {
	return Request{Attempt: 1, Session: "claude/s", Provider: "claude", Model: "m", Binds: true, At: now}
}

func tried(names ...string) Request {
	r := request()
	for _, n := range names {
		r.Tried = append(r.Tried, id(n))
	}
	return r
}

func detour() Request {
	r := request()
	r.Detour = true
	return r
}

func TestDecide(t *testing.T) {
	good := func(name string) *quota.Account { return read(name, 10, 4, 10, 100) }
	worse := func(name string) *quota.Account { return read(name, 60, 4, 60, 100) }
	for name, c := range map[string]struct {
		accounts []*quota.Account
		bound    int // index+1
		pending  int
		siblings []int
		req      Request
		want     string // empty: nothing placed
		how      How
	}{
		"a bound account is kept though another scores better": {
			accounts: []*quota.Account{worse("a"), good("b")}, bound: 1, want: "a", how: HowBound},
		"a bound account is kept though telemetry shows it full": {
			accounts: []*quota.Account{read("a", 100, 4, 10, 100), good("b")}, bound: 1, want: "a", how: HowBound},
		"a bound account is kept though nothing is known of it": {
			accounts: []*quota.Account{unread("a"), good("b")}, bound: 1, want: "a", how: HowBound},
		"a blocked one is left": {
			accounts: []*quota.Account{blocked(good("a"), quotaGone), worse("b")}, bound: 1, want: "b", how: HowKnown},
		"a disabled one is left": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.Enabled = false }), worse("b")}, bound: 1, want: "b", how: HowKnown},
		"one that serves the model no more is left": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.Models = []string{"n"} }), worse("b")}, bound: 1, want: "b", how: HowKnown},
		"a throttled one is left for this once": {
			accounts: []*quota.Account{blocked(good("a"), throttled), worse("b")}, bound: 1, want: "b", how: HowKnown},
		"a throttled one is kept when no other can serve": {
			accounts: []*quota.Account{blocked(good("a"), throttled), blocked(good("b"), quotaGone)}, bound: 1, want: "a", how: HowBound},
		"a throttled one that was tried is not": {
			accounts: []*quota.Account{blocked(good("a"), throttled)}, bound: 1, req: tried("a")},
		"one whose credential did not come is left for this once": {
			accounts: []*quota.Account{blocked(good("a"), late), worse("b")}, bound: 1, want: "b", how: HowKnown},
		"and is kept when no other can serve": {
			accounts: []*quota.Account{blocked(good("a"), late), blocked(good("b"), quotaGone)}, bound: 1, want: "a", how: HowBound},
		"and takes no new placements": {
			accounts: []*quota.Account{blocked(good("a"), late), worse("b")}, pending: 1, siblings: []int{1}, want: "b", how: HowKnown},
		"an unreachable one is kept by its sessions": {
			accounts: []*quota.Account{with(good("a"), unreachable), good("b")}, bound: 1, want: "a", how: HowBound},
		"an unreachable one takes no new placements": {
			accounts: []*quota.Account{with(good("a"), unreachable), worse("b")}, want: "b", how: HowKnown},
		"unless no other can serve": {
			accounts: []*quota.Account{with(good("a"), unreachable), blocked(worse("b"), quotaGone)}, want: "a", how: HowKnown},

		"a detour leaves its account": {
			accounts: []*quota.Account{good("a"), worse("b")}, bound: 1, pending: 1, siblings: []int{1}, req: detour(), want: "b", how: HowKnown},
		"a detour finds nobody rather than its account": {
			accounts: []*quota.Account{blocked(good("a"), throttled)}, bound: 1, req: detour()},
		"a request follows another of its session": {
			accounts: []*quota.Account{good("a"), worse("b")}, pending: 2, want: "b", how: HowFollow},
		"not to an account that it tried": {
			accounts: []*quota.Account{good("a"), worse("b")}, pending: 2, req: tried("b"), want: "a", how: HowKnown},
		"not to a blocked account": {
			accounts: []*quota.Account{good("a"), blocked(worse("b"), quotaGone)}, pending: 2, want: "a", how: HowKnown},
		"a session's further model goes where it lives": {
			accounts: []*quota.Account{good("a"), worse("b")}, siblings: []int{2}, want: "b", how: HowSibling},
		"following comes before that": {
			accounts: []*quota.Account{good("a"), worse("b"), worse("c")}, pending: 3, siblings: []int{2}, want: "c", how: HowFollow},
		"the most recent home comes first": {
			accounts: []*quota.Account{good("a"), worse("b"), worse("c")}, siblings: []int{3, 2}, want: "c", how: HowSibling},
		"a home that cannot serve the model is passed over": {
			accounts: []*quota.Account{good("a"), blocked(worse("b"), quotaGone), worse("c")}, siblings: []int{2, 3}, want: "c", how: HowSibling},
		"a blocked binding moves to the session's other home": {
			accounts: []*quota.Account{blocked(good("a"), quotaGone), worse("b"), good("c")}, bound: 1, siblings: []int{1, 2}, want: "b", how: HowSibling},

		"any known candidate goes before all others": {
			accounts: []*quota.Account{unread("a"), read("b", 99, 4, 99, 100)}, want: "b", how: HowKnown},
		"one window unknown makes an account cautious": {
			accounts: []*quota.Account{with(unread("a"), func(a *quota.Account) { see(a, "5h", 0, 4, now) }), worse("b")}, want: "b", how: HowKnown},
		"an account that declares no window is cautious": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.Windows = nil }), worse("b")}, want: "b", how: HowKnown},
		"unless it is unmetered": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.Windows, a.Unmetered = nil, true }), unread("b")}, want: "a", how: HowKnown},
		"a window of another model is not asked for": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) {
				a.Declare(append(declare(), quota.Declaration{ID: "opus", Kind: quota.KindModel, Length: week, Models: []string{"opus"}}))
			}), worse("b")}, want: "a", how: HowKnown},
		"of cautious ones that with the fewest unconfirmed attempts": {
			accounts: []*quota.Account{with(unread("a"), func(a *quota.Account) { a.Unconfirmed = 1 }), unread("b")}, want: "b", how: HowCautious},
		"stale with room before unknown": {
			accounts: []*quota.Account{unread("a"), stale("b", 50)}, want: "b", how: HowCautious},
		"unknown before stale without room": {
			accounts: []*quota.Account{stale("a", 100), unread("b")}, want: "b", how: HowCautious},

		"the greatest score": {
			accounts: []*quota.Account{worse("a"), good("b")}, want: "b", how: HowKnown},
		"an allowance about to expire": {
			accounts: []*quota.Account{read("a", 10, 4, 10, 100), read("b", 20, 4, 60, 5)}, want: "b", how: HowKnown},
		"a tie: fewer sessions and requests": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.LiveSessions = 1 }), good("b")}, want: "b", how: HowKnown},
		"a tie: least recently placed": {
			accounts: []*quota.Account{with(good("a"), func(a *quota.Account) { a.PlacedAt = now }), good("b")}, want: "b", how: HowKnown},
		"a tie: configuration order": {
			accounts: []*quota.Account{good("b"), good("a")}, want: "b", how: HowKnown},
		"not one that was tried": {
			accounts: []*quota.Account{good("a"), worse("b")}, req: tried("a"), want: "b", how: HowKnown},
		"not one that telemetry shows full": {
			accounts: []*quota.Account{read("a", 0, 4, 100, 100), worse("b")}, want: "b", how: HowKnown},
		"nobody": {
			accounts: []*quota.Account{blocked(good("a"), quotaGone), blocked(good("b"), signedOut)}},
		"nothing configured": {},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(i int) *quota.Account {
				if i == 0 {
					return nil
				}
				return c.accounts[i-1]
			}
			view := View{Accounts: c.accounts, Bound: at(c.bound), Pending: at(c.pending), Fit: DefaultFit}
			for _, i := range c.siblings {
				view.Siblings = append(view.Siblings, at(i))
			}
			if c.req.At.IsZero() {
				c.req = request()
			}
			got := Decide(view, c.req)
			if got.Account.Name != c.want || got.How != c.how || got.Placed != (c.want != "") {
				t.Errorf("placed on %q, %s; want %q, %s\n%s", got.Account.Name, got.How, c.want, c.how, Explain(got))
			}
			if wantBound := c.bound > 0 && c.want == c.accounts[c.bound-1].ID.Name; got.Bound != wantBound {
				t.Errorf("bound = %v", got.Bound)
			}
		})
	}
}

func unreachable(a *quota.Account) {
	a.Unreachable(now)
	a.Unreachable(now)
}

// stale is an account whose evidence is older than its windows.
func stale(name string, used float64) *quota.Account {
	a := unread(name)
	see(a, "5h", used, 0, now.Add(-fiveHours-time.Minute))
	see(a, "weekly", 50, 0, now)
	return a
}

func TestScoreIsTheClosedFormula(t *testing.T) {
	a := read("a", 28, 3, 40, 90)
	a.Begin("m")
	a.Cadence.Add("m", 7, now)
	d := Decide(View{Accounts: []*quota.Account{a}, Fit: 0.25, Demand: quota.Demand{Events: 30, Hours: 2, Ended: 1}}, request())
	nu, L := (5*40+30)/(5+2.0), (5+2.0)/(5+1)
	F := func(h float64) float64 { return L * (1 - math.Exp(-h/L)) }
	rate := func(kappa, used, h float64) float64 {
		commit := kappa * 7 / 0.5 * F(h)
		return (100 - used - kappa - commit - 0.25*kappa*nu*F(h)) / (kappa * h)
	}
	weekly := 0.5 * math.Pow(5.0/168, 0.6)
	want := min(rate(0.5, 28, 3), rate(weekly, 40, 90)) / min(100/(0.5*5), 100/(weekly*168))
	if math.Abs(d.Score-want) > 1e-12 {
		t.Errorf("score = %v, want %v", d.Score, want)
	}
}

func TestMarginIsToTheNextOfTheClass(t *testing.T) {
	accounts := []*quota.Account{read("a", 10, 4, 10, 100), read("b", 10, 4, 30, 100), read("c", 10, 4, 20, 100), stale("d", 0)}
	d := Decide(View{Accounts: accounts, Fit: DefaultFit}, request())
	if want := d.Candidates[0].Score - d.Candidates[2].Score; d.Margin != want || d.Margin <= 0 {
		t.Errorf("margin = %v, want %v", d.Margin, want)
	}
}

func TestForecast(t *testing.T) {
	good := func(name string) *quota.Account { return read(name, 10, 4, 10, 100) }
	in := func(hours float64) time.Time { return now.Add(time.Duration(hours * float64(time.Hour))) }
	until := func(name, window string, hours float64) *quota.Account {
		r := quota.Rejection{Cause: quota.CauseQuota, WindowID: window}
		if hours > 0 {
			r.ClearsAt = in(hours)
			return blocked(good(name), r)
		}
		return blocked(unread(name), r)
	}
	for name, c := range map[string]struct {
		accounts []*quota.Account
		kind     ForecastKind
		at       time.Time
		account  string
		causes   map[string]int
		// tried by the request; cooldowns alone keep nobody away.
		tried []string
	}{
		"the earliest account, by the latest of its blockers": {
			[]*quota.Account{read("a", 100, 1, 100, 30), read("b", 100, 4, 60, 50)}, ForecastExact, in(4), "b", map[string]int{"quota": 2}, nil},
		"a bound alone": {
			[]*quota.Account{until("a", "5h", 0)}, ForecastNoLaterThan, in(5), "a", map[string]int{"quota": 1}, nil},
		"a bound of another account that could clear earlier": {
			[]*quota.Account{until("a", "weekly", 60), until("b", "weekly", 0)}, ForecastNoLaterThan, in(60), "a", map[string]int{"quota": 2}, nil},
		"only a person": {
			[]*quota.Account{blocked(good("a"), signedOut)}, ForecastUnknown, time.Time{}, "a", map[string]int{"auth": 1}, nil},
		"a person, for either of two": {
			[]*quota.Account{blocked(good("a"), signedOut), blocked(good("b"), signedOut)}, ForecastUnknown, time.Time{}, "", map[string]int{"auth": 2}, nil},
		"a person for one, the clock for the other": {
			[]*quota.Account{blocked(good("a"), signedOut), until("b", "weekly", 60)}, ForecastExact, in(60), "b", map[string]int{"auth": 1, "quota": 1}, nil},
		"disabled and ineligible accounts have no part in it": {
			[]*quota.Account{
				with(until("a", "weekly", 1), func(a *quota.Account) { a.Enabled = false }),
				with(until("b", "weekly", 2), func(a *quota.Account) { a.Models = []string{"n"} }),
				until("c", "weekly", 3),
			}, ForecastExact, in(3), "c", map[string]int{"disabled": 1, "model": 1, "quota": 1}, nil},
		"an entitlement has no date": {
			[]*quota.Account{blocked(good("a"), quota.Rejection{Cause: quota.CauseNotEntitled})}, ForecastUnknown, time.Time{}, "", map[string]int{"not_entitled": 1}, nil},
		"a pause that the provider asks for has its date": {
			[]*quota.Account{blocked(good("a"), throttled), until("b", "weekly", 60)}, ForecastExact, now.Add(10 * time.Second), "a", map[string]int{"throttle": 1, "quota": 1}, []string{"a"}},
		"a pause that we guessed dates nothing": {
			[]*quota.Account{blocked(good("a"), guessed)}, ForecastUnknown, time.Time{}, "", map[string]int{"throttle": 1}, []string{"a"}},
		"and may be over before any clock": {
			[]*quota.Account{blocked(good("a"), guessed), until("b", "weekly", 60)}, ForecastNoLaterThan, in(60), "b", map[string]int{"throttle": 1, "quota": 1}, []string{"a"}},
		"the network dates nothing, from its first failure on": {
			[]*quota.Account{blocked(good("a"), cutOff), with(good("b"), unreachable)}, ForecastUnknown, time.Time{}, "", map[string]int{"network": 2}, []string{"a", "b"}},
		"and may be back before any clock": {
			[]*quota.Account{blocked(good("a"), cutOff), until("b", "weekly", 60)}, ForecastNoLaterThan, in(60), "b", map[string]int{"network": 1, "quota": 1}, []string{"a"}},
		"a credential that did not come may come before any clock": {
			[]*quota.Account{blocked(good("a"), late), until("b", "weekly", 60)}, ForecastNoLaterThan, in(60), "b", map[string]int{"credential": 1, "quota": 1}, []string{"a"}},
		"what was tried in vain may work the next time": {
			[]*quota.Account{good("a"), until("b", "weekly", 60)}, ForecastNoLaterThan, in(60), "b", map[string]int{"tried": 1, "quota": 1}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Decide(View{Accounts: c.accounts, Fit: DefaultFit}, tried(c.tried...)).Forecast
			if f.Kind != c.kind || !f.At.Equal(c.at) || f.Account.Name != c.account {
				t.Errorf("forecast = %+v", f)
			}
			if !maps.Equal(f.Causes, c.causes) {
				t.Errorf("causes = %v, want %v", f.Causes, c.causes)
			}
		})
	}
}

func TestAPredictionDatesNoForecast(t *testing.T) {
	a := unread("a")
	a.Observe([]quota.Reading{{Declaration: a.Window("5h").Declaration, State: quota.AwaitingFirstUse, ObservedAt: now}}, now)
	a.Accepted("m", now)
	blocked(a, quota.Rejection{Cause: quota.CauseQuota, WindowID: "5h"})
	f := Decide(View{Accounts: []*quota.Account{a}, Fit: DefaultFit}, request()).Forecast
	if f.Kind != ForecastNoLaterThan || !f.At.Equal(now.Add(fiveHours)) {
		t.Errorf("forecast = %+v", f)
	}
}
