package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Token is the key that clients of this user show to the proxy.
func (d *daemon) Token(context.Context) (api.Token, error) {
	key, err := d.keys.Client()
	return api.Token{Key: key}, err
}

// RotateToken makes another client key.
func (d *daemon) RotateToken(context.Context) (api.Token, error) {
	key, err := d.keys.Rotate()
	return api.Token{Key: key}, err
}

// CreateRunKey makes a key for one run of a client.
func (d *daemon) CreateRunKey(_ context.Context, req api.RunKeyRequest) (api.RunKey, error) {
	if err := d.knownProvider(req.Provider); err != nil {
		return api.RunKey{}, err
	}
	id, key, err := d.keys.NewRun(req.Provider, d.clock.Now())
	if err != nil {
		return api.RunKey{}, err
	}
	return api.RunKey{ID: id, Key: key, BaseURL: d.baseURL() + "/" + req.Provider}, nil
}

// RevokeRunKey ends the key of a run.
func (d *daemon) RevokeRunKey(_ context.Context, id string) error { return d.keys.RevokeRun(id) }

// LaunchFlags names flags of the official client whose values its adapter must see.
func (d *daemon) LaunchFlags(ctx context.Context, provider string) (api.LaunchFlags, error) {
	client, err := d.launcher(provider)
	if err != nil {
		return api.LaunchFlags{}, err
	}
	flags, err := client.LaunchFlags(ctx)
	return api.LaunchFlags{Flags: flags}, launchError(provider, err)
}

// Launch says how the official client is started behind the daemon.
func (d *daemon) Launch(ctx context.Context, req api.LaunchRequest) (api.LaunchPlan, error) {
	client, err := d.launcher(req.Provider)
	if err != nil {
		return api.LaunchPlan{}, err
	}
	question := &providerv1.LaunchCommandRequest{Native: req.Native, Statusline: req.Statusline}
	for _, flag := range req.Seen {
		question.Seen = append(question.Seen, &providerv1.FlagValue{Flag: flag.Flag, Value: flag.Value})
	}
	command, err := client.LaunchCommand(ctx, question)
	if err != nil {
		return api.LaunchPlan{}, launchError(req.Provider, err)
	}
	if !carriesKey(command) && d.setup.Load().Config.Listen.Auth == config.AuthKey {
		// In argv it would be visible to every user of the machine.
		return api.LaunchPlan{}, &api.Error{
			Code: api.CodeRefused, Message: "this way of starting the client has no place for a key but its command line",
			Remedy: "leave -native out, or turn keys off on loopback (listen { auth = \"none\" })",
		}
	}
	return api.LaunchPlan{Argv: command.Argv, Environment: command.Environment, Unset: command.Unset}, nil
}

// carriesKey reports whether the key of the run reaches the client in its environment.
func carriesKey(command plugin.Command) bool {
	for _, value := range command.Environment {
		if strings.Contains(value, "{{key}}") {
			return true
		}
	}
	return false
}

func (d *daemon) launcher(provider string) (*plugin.Client, error) {
	if err := d.knownProvider(provider); err != nil {
		return nil, err
	}
	client, err := d.host.Client(provider)
	return client, launchError(provider, err)
}

func launchError(provider string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plugin.ErrNotOffered):
		return &api.Error{
			Code: api.CodeUnsupported, Message: "the adapter of " + provider + " does not start a client",
			Remedy: "start the client yourself with the base URL of the proxy and the key of noria token show",
		}
	case errors.Is(err, plugin.ErrAway), errors.Is(err, plugin.ErrUnknown):
		return &api.Error{
			Code: api.CodeUnavailable, Message: "the adapter of " + provider + " is away", Remedy: "see noria plugins list",
		}
	}
	return err
}
