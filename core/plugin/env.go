package plugin

import (
	"slices"
	"strings"
)

// usualEnvironment is what every adapter sees, beside XDG_*.
var usualEnvironment = []string{"PATH", "HOME", "TMPDIR", "LANG"}

// secretSuffixes mark variables that no adapter sees, whatever it asks for and the configuration allows: credentials are
// configured, never inherited, and neither is an upstream.
var secretSuffixes = []string{"_API_KEY", "_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_BASE_URL"}

// ownPrefixes mark variables between host, go-plugin and SDK.
var ownPrefixes = []string{"PLUGIN_", "NORIA_"}

// environment picks from host, a list of NAME=value, what an adapter may see: the usual, and what it names in its
// description as far as the configuration allows it.
func environment(host, described, allowed []string) []string {
	var picked []string
	for _, entry := range host {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || !envPattern.MatchString(name) || isWithheld(name) {
			continue
		}
		usual := slices.Contains(usualEnvironment, name) || strings.HasPrefix(name, "XDG_")
		if usual || slices.Contains(described, name) && slices.Contains(allowed, name) {
			picked = append(picked, entry)
		}
	}
	slices.Sort(picked)
	return picked
}

func isWithheld(name string) bool {
	upper := strings.ToUpper(name)
	for _, suffix := range secretSuffixes {
		if strings.HasSuffix(upper, suffix) {
			return true
		}
	}
	for _, prefix := range ownPrefixes {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return false
}
