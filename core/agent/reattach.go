package agent

import (
	"encoding/json"
	"strings"

	"github.com/noria-dev/noria/sdk/wire"
)

// runningAdapter gives back the line of an adapter that somebody started with -debug when it is that of the plugin, else
// "". core/plugin checks the rest of it.
func runningAdapter(plugin, line string) string {
	value := strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), wire.EnvReattach+"="), "'")
	var at wire.Reattach
	if json.Unmarshal([]byte(value), &at) != nil || at.Name != plugin {
		return ""
	}
	return value
}
