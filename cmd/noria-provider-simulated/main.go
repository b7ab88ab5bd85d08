// Command noria-provider-simulated is the adapter of a provider that does not exist; see plugins/simulated.
package main

import (
	"github.com/noria-dev/noria/plugins/simulated"
	"github.com/noria-dev/noria/sdk"
)

func main() { sdk.Serve(simulated.New) }
