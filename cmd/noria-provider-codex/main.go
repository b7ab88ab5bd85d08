// Command noria-provider-codex is the adapter for Codex. The daemon starts it; with describe it says what it is.
package main

import (
	"github.com/noria-dev/noria/plugins/codex"
	"github.com/noria-dev/noria/sdk"
)

func main() {
	sdk.Serve(func() sdk.Adapter { return codex.New() })
}
