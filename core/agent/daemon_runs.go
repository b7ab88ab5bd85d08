package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// runnerCheck is how often the daemon looks whether the processes of runs are still there.
const runnerCheck = 2 * time.Second

// watchRuns ends the keys of runs whose process is gone, until ctx ends.
func (a *Agent) watchRuns(ctx context.Context) {
	every(ctx, runnerCheck, func() {
		ended, err := a.keys.RevokeEnded()
		if ended > 0 {
			a.log.Info("keys of runs ended with their processes", "keys", ended)
		}
		a.warnUnsaved(err)
	})
}

func (a *Agent) warnUnsaved(err error) {
	if err != nil {
		a.log.Warn("keys of runs", "error", err)
	}
}

// Token is the key that clients of this user show to the proxy, and who has a key of a run.
func (d *daemon) Token(context.Context) (api.Token, error) {
	key, err := d.keys.Client()
	return api.Token{Key: key, Runs: d.runs()}, err
}

// RotateToken makes another client key, and ends the keys of runs as well if asked to.
func (d *daemon) RotateToken(_ context.Context, req api.RotateRequest) (api.Token, error) {
	key, err := d.keys.Rotate()
	if err != nil {
		return api.Token{}, &api.Error{
			Code: api.CodeUnavailable, Message: err.Error(), Remedy: "see that there is room in the state directory; the key of before stays",
		}
	}
	token := api.Token{Key: key}
	if req.Runs {
		token.Ended, err = d.keys.RevokeRuns()
	}
	token.Runs = d.runs()
	return token, err
}

func (d *daemon) runs() []api.Run {
	runs := []api.Run{}
	for _, run := range d.keys.Runs() {
		runs = append(runs, api.Run{ID: run.id, Provider: run.Provider, PID: run.Runner.PID, Since: run.Made})
	}
	return runs
}

// CreateRunKey makes a key for one run of a client. It ends with the process that asks for it.
func (d *daemon) CreateRunKey(_ context.Context, req api.RunKeyRequest) (api.RunKey, error) {
	if err := d.knownProvider(req.Provider); err != nil {
		return api.RunKey{}, err
	}
	runner, err := runnerOf(req.PID)
	if err != nil {
		d.log.Warn("a run got no key", "error", err)
		return api.RunKey{}, &api.Error{
			Code: api.CodeRefused, Message: "the daemon cannot see the process that asks for a key, with which the key would end",
			Remedy: "run it where the daemon runs, or start the client with the key of \"noria token show\"",
		}
	}
	id, key, err := d.keys.NewRun(req.Provider, runner, d.clock.Now())
	if errors.Is(err, errUnsaved) {
		d.warnUnsaved(err)
	} else if err != nil {
		return api.RunKey{}, err
	}
	return api.RunKey{ID: id, Key: key, BaseURL: d.baseURL() + "/" + req.Provider}, nil
}

// RevokeRunKey ends the key of a run.
func (d *daemon) RevokeRunKey(_ context.Context, id string) error {
	d.warnUnsaved(d.keys.RevokeRun(id))
	return nil
}

// LaunchFlags names flags of the official client whose values its adapter must see.
func (d *daemon) LaunchFlags(ctx context.Context, provider string) (api.LaunchFlags, error) {
	client, err := d.launcher(provider)
	if err != nil {
		return api.LaunchFlags{}, err
	}
	flags, err := client.LaunchFlags(ctx)
	return api.LaunchFlags{Flags: flags}, d.launchError(provider, err)
}

// Launch says how the official client is started behind the daemon.
func (d *daemon) Launch(ctx context.Context, req api.LaunchRequest) (api.LaunchPlan, error) {
	client, err := d.launcher(req.Provider)
	if err != nil {
		return api.LaunchPlan{}, err
	}
	question := &providerv1.LaunchCommandRequest{Native: req.Native}
	for _, flag := range req.Seen {
		question.Seen = append(question.Seen, &providerv1.FlagValue{Flag: flag.Flag, Value: flag.Value})
	}
	command, err := client.LaunchCommand(ctx, question)
	if err != nil {
		return api.LaunchPlan{}, d.launchError(req.Provider, err)
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
	return client, d.launchError(provider, err)
}

func (d *daemon) launchError(provider string, err error) error {
	var reported *plugin.ReportedError
	switch {
	case errors.As(err, &reported):
		return &api.Error{Code: api.CodeRefused, Message: reported.Reason}
	case err == nil:
		return nil
	case errors.Is(err, plugin.ErrNotOffered):
		return &api.Error{
			Code: api.CodeUnsupported, Message: "the adapter of " + provider + " does not start a client",
			Remedy: "start it yourself with the base URL " + d.baseURL() + "/" + provider + " and the key of \"noria token show\"",
		}
	case errors.Is(err, plugin.ErrAway), errors.Is(err, plugin.ErrUnknown):
		return &api.Error{
			Code: api.CodeUnavailable, Message: "the adapter of " + provider + " is not running", Remedy: "\"noria plugins list\" shows why",
		}
	}
	return err
}
