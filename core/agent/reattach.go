package agent

import "github.com/noria-dev/noria/sdk/wire"

// runningAdapter gives back the line of an adapter that somebody started with -debug when it is that of the plugin, else
// "". core/plugin checks the rest of it.
func runningAdapter(plugin, line string) string {
	if at, err := wire.ReadReattach(line); err != nil || at.Name != plugin {
		return ""
	}
	return line
}
