//go:build fault

package agent_test

import "testing"

func TestCampaignAdapterKills(t *testing.T) { killAdapters(t, 1000, 50) }
