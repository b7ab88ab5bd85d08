package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noria-dev/noria/core/internal/printable"
)

// text is what came from outside, made printable.
func text(s string) string { return printable.Text(s) }

// causesText counts accounts by what keeps them away.
func causesText(causes map[string]int) string {
	parts := make([]string, 0, len(causes))
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		parts = append(parts, fmt.Sprintf("%d %s", causes[cause], strings.ReplaceAll(cause, "_", " ")))
	}
	return strings.Join(parts, ", ")
}
