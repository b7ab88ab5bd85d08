package journal

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in a process that a test started, the part that the test needs done by another process.
func TestMain(m *testing.M) {
	if part := os.Getenv(partVariable); part != "" {
		os.Exit(playPart(part))
	}
	goleak.VerifyTestMain(m)
}
