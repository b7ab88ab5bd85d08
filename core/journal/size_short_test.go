//go:build !fault

package journal

import "time"

// How long the campaigns of this package are; make fault runs the long ones.
const (
	crashPoints    = 1_500
	mutationPoints = 3_000
	flipStep       = 5 // every bit of a byte in turn
	contests       = 10
	malformedFiles = 1_000
	virtualTick    = time.Minute
	processKills   = 10
)
