package config

import (
	"fmt"
	"strings"

	"github.com/noria-dev/noria/core/internal/nearest"
)

// didYouMean is a sentence with the nearest of known, empty when none is near.
func didYouMean(given string, known []string) string {
	best := nearest.Word(given, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

func quotedList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}
