package quota

import (
	"testing"
	"time"
)

func TestClearing(t *testing.T) {
	reset, weekly := start.Add(2*time.Hour), start.Add(50*time.Hour)
	for name, c := range map[string]struct {
		prepare      func(*Account)
		dated, exact bool
		at           time.Time
		window       string
	}{
		"the later of two": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: weekly}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
		}, true, true, weekly, "weekly"},
		"a bound is not exact": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
		}, true, false, start.Add(fiveHours), "5h"},
		"an earlier bound is not exact either": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "weekly", ClearsAt: weekly}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h"}, "m")
		}, true, false, weekly, "weekly"},
		"a sign-in has no date": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseAuth}, "m")
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
		}, false, false, start, ""},
		"an entitlement has no date": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseNotEntitled}, "m")
		}, false, false, start, ""},
		"a pause that the provider asks for has one": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle, RetryAfter: 5 * time.Second}, "m")
		}, true, true, start.Add(5 * time.Second), ""},
		"a pause that we guessed has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle}, "m")
		}, false, false, start, ""},
		"nor has one that we cut short": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseThrottle, RetryAfter: 100 * time.Hour}, "m")
		}, false, false, start, ""},
		"the network has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseNetwork}, "m")
			a.refuse(Rejection{Cause: CauseNetwork}, "m")
		}, false, false, start, ""},
		"a credential that did not come has none": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseCredential}, "m")
		}, false, false, start, ""},
		"trouble on the way to a spent account takes its date not away": {func(a *Account) {
			a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m")
			for _, cause := range []Cause{CauseNetwork, CauseNetwork, CauseCredential, CauseThrottle} {
				a.refuse(Rejection{Cause: cause}, "m")
			}
		}, true, true, reset, "5h"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			c.prepare(a)
			got, blocked := a.Clearing("m", true, start)
			if !blocked || got.Dated != c.dated || got.Exact != c.exact || !got.At.Equal(c.at) || got.Governing.Window != c.window {
				t.Errorf("clearing = %+v", got)
			}
		})
	}
}
