package simulated

import (
	"testing"

	"github.com/noria-dev/noria/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, New, plugintest.MustRead("testdata/fixtures.json"))
}
