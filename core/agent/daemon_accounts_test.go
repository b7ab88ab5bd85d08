package agent

import (
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

func TestAReadingIsFreshWhileItIsYoung(t *testing.T) {
	since := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule string
		view quota.WindowView
		want string
	}{
		{"read since", quota.WindowView{State: quota.ViewFresh, ObservedAt: since}, "fresh"},
		{"read before", quota.WindowView{State: quota.ViewFresh, ObservedAt: since.Add(-time.Second)}, "observed"},
		{"used up is no question of age", quota.WindowView{State: quota.ViewExhausted, ObservedAt: since.Add(-time.Hour)}, "exhausted"},
		{"never read", quota.WindowView{State: quota.ViewPending}, "pending"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := windowState(c.view, since); got != c.want {
				t.Errorf("state is %s, want %s", got, c.want)
			}
		})
	}
}
