//go:build fault

package state

import (
	"flag"
	"testing"
)

// TestTenThousandHistories is the long form of the property tests.
func TestTenThousandHistories(t *testing.T) {
	short := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", "10000"); err != nil {
		t.Fatal(err)
	}
	defer flag.Set("rapid.checks", short)
	t.Run("histories keep the promises", TestHistoriesKeepThePromises)
	t.Run("any prefix after any snapshot", TestAnyPrefixAfterAnySnapshotGivesTheSameState)
}
