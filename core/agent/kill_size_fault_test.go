//go:build fault

package agent_test

import "time"

const (
	kills      = 1000
	killWithin = 150 * time.Millisecond
	manyStarts = 20
)
