package agent

import (
	"encoding/json"

	"github.com/noria-dev/noria/core/plugin"
)

const serviceName = "noria"

// readiness is the body of /readyz.
type readiness struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Ready   bool   `json:"ready"`
	// Providers tell the state of each enabled provider's adapter.
	Providers map[string]plugin.State `json:"providers"`
}

// ready tells whether every enabled provider's adapter is ready or has definitely failed. State is recovered and the
// configuration applied before anything listens.
func (a *Agent) ready() (bool, []byte) {
	answer := readiness{Service: serviceName, Version: a.options.Version, Ready: !a.draining.Load(), Providers: map[string]plugin.State{}}
	states := a.adapterStates()
	for _, provider := range a.providers() {
		state, known := states[provider]
		if !known {
			// The host has not come to it yet.
			state = plugin.StateStarting
		}
		switch state {
		case plugin.StateDisabled, plugin.StateReady, plugin.StateFailed:
		default:
			answer.Ready = false
		}
		answer.Providers[provider] = state
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return false, nil
	}
	return answer.Ready, body
}
