//go:build fault

package journal

import "time"

const (
	crashPoints    = 30_000
	mutationPoints = 30_000
	flipStep       = 1
	contests       = 100
	malformedFiles = 10_000
	virtualTick    = time.Second // as the daemon
	processKills   = 1_000
)
