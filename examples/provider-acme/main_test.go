package main

import (
	"testing"

	"github.com/noria-dev/noria/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, newAcme, plugintest.MustRead("testdata/fixtures.json"))
}
