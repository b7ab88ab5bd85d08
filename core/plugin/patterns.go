package plugin

import "regexp"

var (
	reasonPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	envPattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)
