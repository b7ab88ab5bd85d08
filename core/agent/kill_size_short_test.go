//go:build !fault

package agent_test

import "time"

// How long the campaigns of this package are; make fault runs the long ones.
const (
	kills      = 12
	killWithin = 60 * time.Millisecond
	manyStarts = 1
)
