package codex

import (
	"context"
	"errors"

	"github.com/noria-dev/noria/sdk"
)

var errNotConfigured = errors.New("adapter is not configured")

// LaunchFlags: no flag of the client's has to be merged; a later -c of the user's wins over ours.
func (*Adapter) LaunchFlags() []string { return nil }

// LaunchCommand starts Codex behind the daemon, for this invocation only: nothing is written.
//
// By default the client gets a provider of its own, to which it sends no credential but the run's key, and needs no login.
// A thread belongs to the provider that it began with, so native keeps the client's own provider, for existing threads
// and for tools that only that has; the client's own login is sent along then, and goes no further than the daemon.
func (a *Adapter) LaunchCommand(_ context.Context, req sdk.LaunchRequest) (sdk.Command, error) {
	p := a.configured.Load()
	if p == nil {
		return sdk.Command{}, errNotConfigured
	}
	command := sdk.Command{
		Argv:  []string{p.Client},
		Env:   map[string]string{"NO_PROXY": "{{no_proxy}}", "no_proxy": "{{no_proxy}}"},
		Unset: []string{"OPENAI_BASE_URL"},
	}
	if req.Native {
		command.Argv = append(command.Argv, "-c", `openai_base_url="{{base_url}}"`)
	} else {
		command.Argv = append(command.Argv,
			"-c", `model_provider="noria"`,
			"-c", `model_providers.noria={name="noria",base_url="{{base_url}}",env_http_headers={"x-noria-key"="NORIA_KEY"}}`)
		command.Env["NORIA_KEY"] = "{{key}}"
	}
	command.Argv = append(command.Argv, "{{args}}")
	return command, nil
}
