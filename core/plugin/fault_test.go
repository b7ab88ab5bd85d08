//go:build fault

package plugin

import (
	"testing"
	"time"
)

func TestFaultThousandCrashes(t *testing.T) { crashCampaign(t, 1000) }

func TestFaultTwoHundredKilledDaemons(t *testing.T) { orphanCampaign(t, 200, 2*time.Second) }
