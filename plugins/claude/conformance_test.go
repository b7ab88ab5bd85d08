package claude

import (
	"testing"

	"github.com/noria-dev/noria/sdk"
	"github.com/noria-dev/noria/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, func() sdk.Adapter { return New() }, plugintest.MustRead("testdata/fixtures.json"))
}
