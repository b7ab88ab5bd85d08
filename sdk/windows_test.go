package sdk_test

import (
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

func TestTheMeaningOfAWindowComesFromItsLength(t *testing.T) {
	tests := []struct {
		minutes int
		id      string
		kind    sdk.WindowKind
	}{
		{300, "5h", sdk.WindowRolling},
		{10080, "weekly", sdk.WindowWeekly},
		{60, "1h", sdk.WindowRolling},
		{1440, "1d", sdk.WindowRolling},
		{90, "90min", sdk.WindowRolling},
		{30 * 1440, "30d", sdk.WindowMonthly},
		{0, "", sdk.WindowRolling},
	}
	for _, test := range tests {
		length := time.Duration(test.minutes) * time.Minute
		window := sdk.WindowOf(length)
		if window.ID != test.id || window.Kind != test.kind || window.Length != length {
			t.Errorf("%d minutes: %s, %s, %s", test.minutes, window.ID, window.Kind, window.Length)
		}
		if declared := window.Declaration(); declared.ID != test.id || declared.Kind != test.kind || declared.Length != length {
			t.Errorf("%d minutes: declared as %+v", test.minutes, declared)
		}
	}
}
