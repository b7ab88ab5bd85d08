// Package nearest finds the word that somebody meant.
package nearest

import "github.com/agext/levenshtein"

// maxDistance is how many letters may differ.
const maxDistance = 2

// Word is the one of known that is nearest to given, empty when none is near. Among equals one of the same length goes first,
// because two letters that changed places are the most common slip.
func Word(given string, known []string) string {
	best, distance := "", maxDistance+1
	for _, k := range known {
		d := levenshtein.Distance(given, k, nil)
		if d < distance || d == distance && d <= maxDistance && len(k) == len(given) && len(best) != len(given) {
			best, distance = k, d
		}
	}
	return best
}
