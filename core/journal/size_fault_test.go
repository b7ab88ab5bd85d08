//go:build fault

package journal

const (
	crashPoints    = 30_000
	mutationPoints = 30_000
	flipStep       = 1
	contests       = 100
	malformedFiles = 10_000
	processKills   = 1_000
)
