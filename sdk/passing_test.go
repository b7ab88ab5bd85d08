package sdk

import "testing"

func TestPassingTroubleIsWhatNobodyDates(t *testing.T) {
	for _, c := range []struct {
		rule   string
		causes map[Cause]int
		kind   ForecastKind
		want   bool
	}{
		{"quota has its clock", map[Cause]int{CauseQuota: 2}, ForecastExact, false},
		{"a sign-in needs a person", map[Cause]int{CauseAuth: 1}, ForecastUnknown, false},
		{"the network may be back at any moment", map[Cause]int{CauseNetwork: 1}, ForecastUnknown, true},
		{"also beside a clock", map[Cause]int{CauseQuota: 2, CauseNetwork: 1}, ForecastNoLaterThan, true},
		{"a late credential may come at any moment", map[Cause]int{CauseAuth: 1, CauseCredential: 1}, ForecastUnknown, true},
		{"a throttle may end at any moment", map[Cause]int{CauseQuota: 1, CauseThrottled: 1}, ForecastNoLaterThan, true},
		{"unless the provider told when", map[Cause]int{CauseQuota: 1, CauseThrottled: 1}, ForecastExact, false},
	} {
		if got := (Unavailability{Causes: c.causes, ForecastKind: c.kind}).Passing(); got != c.want {
			t.Errorf("%s: %v", c.rule, got)
		}
	}
}
