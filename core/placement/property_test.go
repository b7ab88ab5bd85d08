package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/quota"
)

// anyAccount draws an account with any history of readings, work, rejections and pauses.
func anyAccount(t *rapid.T, name string) *quota.Account {
	a := unread(name)
	percent := rapid.Float64Range(0, 100)
	hours := rapid.Float64Range(0, 6)
	if rapid.Bool().Draw(t, "read 5h") {
		see(a, "5h", percent.Draw(t, "5h"), hours.Draw(t, "5h hours"), now.Add(-time.Duration(hours.Draw(t, "age")*float64(time.Hour))))
	}
	if rapid.Bool().Draw(t, "read week") {
		see(a, "weekly", percent.Draw(t, "week"), rapid.Float64Range(0, 168).Draw(t, "week hours"), now)
	}
	for range rapid.IntRange(0, 5).Draw(t, "in flight") {
		a.Begin("m")
	}
	for range rapid.IntRange(0, 20).Draw(t, "completed") {
		a.Begin("m")
		a.Complete("m", now.Add(-time.Minute))
	}
	a.Cadence.Add("m", rapid.Float64Range(0, 200).Draw(t, "cadence"), now)
	switch rapid.IntRange(0, 8).Draw(t, "trouble") {
	case 0:
		blocked(a, quotaGone)
	case 1:
		blocked(a, signedOut)
	case 2:
		blocked(a, throttled)
	case 3:
		unreachable(a)
	case 4:
		a.Enabled = false
	case 5:
		a.Models = []string{"other"}
	case 6:
		blocked(a, late)
	}
	a.LiveSessions = rapid.IntRange(0, 3).Draw(t, "live")
	a.Unconfirmed = rapid.IntRange(0, 2).Draw(t, "unconfirmed")
	a.PlacedAt = now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "placed")) * time.Minute)
	a.Settle(now)
	return a
}

func anyView(t *rapid.T) View {
	v := View{Fit: rapid.Float64Range(0, 1).Draw(t, "fit"), Demand: quota.Demand{
		Events: rapid.Float64Range(0, 1000).Draw(t, "events"),
		Hours:  rapid.Float64Range(0, 100).Draw(t, "hours"),
		Ended:  rapid.Float64Range(0, 100).Draw(t, "ended"),
	}}
	for i := range rapid.IntRange(1, 5).Draw(t, "accounts") {
		v.Accounts = append(v.Accounts, anyAccount(t, string(rune('a'+i))))
	}
	pick := func(label string) *quota.Account {
		if i := rapid.IntRange(-1, len(v.Accounts)-1).Draw(t, label); i >= 0 {
			return v.Accounts[i]
		}
		return nil
	}
	v.Bound, v.Pending = pick("bound"), pick("pending")
	if s := pick("sibling"); s != nil {
		v.Siblings = []*quota.Account{s}
	}
	return v
}

func anyRequest(t *rapid.T, v View) Request {
	req := request()
	for _, a := range v.Accounts {
		if rapid.IntRange(0, 3).Draw(t, "tried") == 0 {
			req.Tried = append(req.Tried, a.ID)
		}
	}
	return req
}

func (v View) account(id quota.AccountID) *quota.Account {
	for _, a := range v.Accounts {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func TestEveryDecisionKeepsThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyView(t)
		req := anyRequest(t, v)
		d := Decide(v, req)
		served := false
		for _, a := range v.Accounts {
			served = served || able(a, req, a != v.Bound)
		}
		if d.Placed != served {
			t.Fatalf("placed %v, though an account can serve: %v\n%s", d.Placed, served, Explain(d))
		}
		if b := v.Bound; b != nil && able(b, req, false) && !b.Paused(now) && d.Account != b.ID {
			t.Fatalf("a healthy binding was left\n%s", Explain(d))
		}
		if !d.Placed {
			if d.Forecast.Kind == "" {
				t.Fatal("nothing placed and no forecast")
			}
			return
		}
		a := v.account(d.Account)
		if !a.Serves(req.Model) || a.Blocked(req.Model, a != v.Bound, now) {
			t.Fatalf("placed on an account that cannot serve\n%s", Explain(d))
		}
		for _, tried := range req.Tried {
			if tried == d.Account {
				t.Fatal("placed on an account that the request tried")
			}
		}
		for _, c := range d.Candidates {
			if c.Filtered == "" && c.Known() && d.How == HowCautious {
				t.Fatalf("a cautious attempt beside a known account\n%s", Explain(d))
			}
		}
	})
}

func TestPermutationOfAccountsChangesOnlyTheLastTie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyView(t)
		req := anyRequest(t, v)
		before := Decide(v, req)
		v.Accounts = rapid.Permutation(v.Accounts).Draw(t, "order")
		after := Decide(v, req)
		if before.Placed != after.Placed || before.How != after.How || before.Forecast.Kind != after.Forecast.Kind || !before.Forecast.At.Equal(after.Forecast.At) {
			t.Fatalf("%s\n%s", Explain(before), Explain(after))
		}
		if before.Account == after.Account {
			return
		}
		a, b := v.account(before.Account), v.account(after.Account)
		x, y := candidate(before, before.Account), candidate(before, after.Account)
		if x.Work != y.Work || !a.PlacedAt.Equal(b.PlacedAt) || x.rank() != y.rank() || max(x.Score-y.Score, y.Score-x.Score) > tie {
			t.Fatalf("the order of accounts decided\n%s\n%s", Explain(before), Explain(after))
		}
	})
}

func candidate(d Decision, id quota.AccountID) *Candidate {
	for i := range d.Candidates {
		if d.Candidates[i].Account == id {
			return &d.Candidates[i]
		}
	}
	return nil
}

// score of one account for a request of model m.
func score(a *quota.Account, d quota.Demand) float64 {
	v := View{Accounts: []*quota.Account{a}, Fit: DefaultFit, Demand: d}
	return v.candidates(request())[0].Score
}

func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short, weekly := rapid.Float64Range(0, 90).Draw(t, "short"), rapid.Float64Range(0, 90).Draw(t, "weekly")
		shortHours, weeklyHours := rapid.Float64Range(0.1, 5).Draw(t, "short hours"), rapid.Float64Range(0.1, 168).Draw(t, "weekly hours")
		work := rapid.IntRange(0, 5).Draw(t, "in flight")
		cadence := rapid.Float64Range(0, 50).Draw(t, "cadence")
		build := func(less, sooner float64, fewer int, calmer float64) *quota.Account {
			a := read("a", short-less, shortHours-sooner, weekly-less, weeklyHours)
			for range work - fewer {
				a.Begin("m")
			}
			a.Cadence.Add("m", cadence-calmer, now)
			return a
		}
		base := score(build(0, 0, 0, 0), quota.Demand{})
		const rounding = 1e-9
		if more := score(build(rapid.Float64Range(0, min(short, weekly)).Draw(t, "less used"), 0, 0, 0), quota.Demand{}); more < base-rounding {
			t.Fatalf("more remaining lowered the score from %v to %v", base, more)
		}
		if work > 0 {
			if lighter := score(build(0, 0, 1, 0), quota.Demand{}); lighter < base-rounding {
				t.Fatalf("a request less in flight lowered the score from %v to %v", base, lighter)
			}
		}
		if calm := score(build(0, 0, 0, rapid.Float64Range(0, cadence).Draw(t, "calmer")), quota.Demand{}); calm < base-rounding {
			t.Fatalf("fewer commitments lowered the score from %v to %v", base, calm)
		}
		// A sooner reset raises the rate while what is left is positive; a deficit that must be made good sooner is a greater one.
		sooner := rapid.Float64Range(0, shortHours-0.05).Draw(t, "sooner")
		if early := score(build(0, sooner, 0, 0), quota.Demand{}); base > 0 && early < base-rounding {
			t.Fatalf("a sooner reset lowered the score from %v to %v", base, early)
		}
	})
}

func TestDecideChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyView(t)
		req := anyRequest(t, v)
		before, first := v.everything(), Decide(v, req)
		if after := v.everything(); after != before {
			t.Fatalf("the accounts differ after the decision\n%s\n%s", before, after)
		}
		if again := Decide(v, req); Explain(again) != Explain(first) {
			t.Fatalf("the second decision differs\n%s\n%s", Explain(first), Explain(again))
		}
	})
}

// everything is the whole content of the accounts, what they keep to themselves as well.
func (v View) everything() string {
	var b strings.Builder
	for _, a := range v.Accounts {
		fmt.Fprintf(&b, "%+v\n", *a)
	}
	return b.String()
}
