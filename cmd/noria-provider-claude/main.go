// Command noria-provider-claude is the adapter for Claude Code. The daemon starts it; with describe it says what it is.
package main

import (
	"github.com/noria-dev/noria/plugins/claude"
	"github.com/noria-dev/noria/sdk"
)

func main() {
	sdk.Serve(func() sdk.Adapter { return claude.New() })
}
