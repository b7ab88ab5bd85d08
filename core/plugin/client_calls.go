package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Verdict is the adapter's reading of a failure, checked.
type Verdict struct {
	Outcome providerv1.Outcome
	Scope   providerv1.Scope
	// Rejection is filled for QUOTA_EXHAUSTED, AUTH_FAILED, NOT_ENTITLED and THROTTLED with account or model scope.
	Rejection quota.Rejection
	// Reason is a code in snake_case.
	Reason string
}

// Classify says what a failed response or an inspected event means, within one second. sentAt is when the request was
// sent.
func (c *Client) Classify(ctx context.Context, account string, evidence *providerv1.ClassifyRequest, sentAt time.Time) (Verdict, error) {
	a, err := c.enabled(account)
	if err != nil {
		return Verdict{}, err
	}
	evidence.Account = account
	var answer *providerv1.ClassifyResponse
	err = c.invoke(ctx, c.timing.classify, "", "Classify", func(ctx context.Context, i *instance) (err error) {
		answer, err = providerv1.NewProviderClient(i.conn).Classify(ctx, evidence)
		return err
	})
	if err != nil {
		return Verdict{}, err
	}
	now := c.clock.Now()
	a.use(now)
	v := c.check.verdict(answer, evidence, sentAt, now)
	if v.Rejection.Cause == "" && v.Outcome == answer.GetOutcome() {
		// Evidence that rejects nothing is telemetry like any other; a rejection carries its windows itself.
		c.report(WindowReport{Account: a.id, Readings: c.check.readings(answer.GetWindows(), quota.SourceResponseHeader, sentAt), SentAt: sentAt})
	}
	return v, nil
}

// Unavailable shapes the host's own answer.
func (c *Client) Unavailable(ctx context.Context, req *providerv1.UnavailableRequest) (*providerv1.Answer, error) {
	var answer *providerv1.Answer
	err := c.invoke(ctx, c.timing.call, "", "Unavailable", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewProviderClient(i.conn).Unavailable(ctx, req)
		if err == nil {
			answer, err = c.check.answer(got.GetAnswer())
		}
		return err
	})
	return answer, err
}

// AuthStatus tells about the login of an account.
type AuthStatus struct {
	State    providerv1.AuthState
	Method   string
	Eligible bool
	// Reason why it is not eligible.
	Reason string
}

// CheckAuth asks about the login of an account, enabled or not.
func (c *Client) CheckAuth(ctx context.Context, account string) (AuthStatus, error) {
	var status AuthStatus
	err := c.invokeFor(ctx, account, wire.ServiceAuth, "CheckAuth", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewAuthClient(i.conn).CheckAuth(ctx, &providerv1.CheckAuthRequest{Account: account})
		status = AuthStatus{State: authState(got.GetState()), Method: c.check.text(got.GetMethod(), maxIDBytes),
			Eligible: got.GetEligible(), Reason: c.check.sentence(got.GetReason())}
		return err
	})
	return status, err
}

// Command is a command line for the user's own terminal. Environment is set and Unset removed for its invocation.
type Command struct {
	Argv        []string
	Environment map[string]string
	Unset       []string
}

// LoginCommand gives the official login command of an account, enabled or not.
func (c *Client) LoginCommand(ctx context.Context, account string) (Command, error) {
	var command Command
	err := c.invokeFor(ctx, account, wire.ServiceAuth, "LoginCommand", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewAuthClient(i.conn).LoginCommand(ctx, &providerv1.LoginCommandRequest{Account: account})
		if err == nil {
			command, err = c.check.command(got.GetCommand())
		}
		return err
	})
	return command, err
}

// ModelCatalog lists models as the official client knows them.
type ModelCatalog struct {
	Models        []Model
	ClientVersion string
	Source        string
	ReadAt        time.Time
}

// Model is one entry of a ModelCatalog.
type Model struct {
	ID, DisplayName string
	Efforts         []string
	DefaultEffort   string
	Default, Hidden bool
	Upgrade         string
}

// ListModels asks what the official client says can be used.
func (c *Client) ListModels(ctx context.Context, account string) (ModelCatalog, error) {
	var catalog ModelCatalog
	asked := c.clock.Now()
	err := c.invokeFor(ctx, account, wire.ServiceCatalog, "ListModels", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewCatalogClient(i.conn).ListModels(ctx, &providerv1.ListModelsRequest{Account: account})
		if err == nil {
			catalog = c.check.models(got, asked)
		}
		return err
	})
	return catalog, err
}

// LaunchFlags names the flags of the official client that LaunchCommand must see.
func (c *Client) LaunchFlags(ctx context.Context) ([]string, error) {
	var flags []string
	err := c.invoke(ctx, c.timing.call, wire.ServiceLaunch, "LaunchFlags", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewLaunchClient(i.conn).LaunchFlags(ctx, &providerv1.LaunchFlagsRequest{})
		if err == nil && !namesOnly(got.GetFlags(), maxServices) {
			err = badAnswer("flags")
		}
		flags = got.GetFlags()
		return err
	})
	if err != nil {
		return nil, err
	}
	return flags, nil
}

// LaunchCommand gives the command that starts the official client behind the host.
func (c *Client) LaunchCommand(ctx context.Context, req *providerv1.LaunchCommandRequest) (Command, error) {
	var command Command
	err := c.invoke(ctx, c.timing.call, wire.ServiceLaunch, "LaunchCommand", func(ctx context.Context, i *instance) error {
		got, err := providerv1.NewLaunchClient(i.conn).LaunchCommand(ctx, req)
		if err == nil {
			command, err = c.check.command(got.GetCommand())
		}
		return err
	})
	return command, err
}

// invokeFor makes a call about an account that is configured.
func (c *Client) invokeFor(ctx context.Context, account, service, method string, call func(context.Context, *instance) error) error {
	return c.invoke(ctx, c.timing.call, service, method, func(ctx context.Context, i *instance) error {
		if _, ok := i.account(account); !ok {
			return fmt.Errorf("%w account %s/%s", ErrUnknown, c.provider, printable.Line(account, maxIDBytes))
		}
		return call(ctx, i)
	})
}

func (c *Client) validate(ctx context.Context, config *pluginv1.Config) ([]Diagnostic, error) {
	i := c.current.Load()
	if i == nil {
		return nil, c.away("ValidateConfig")
	}
	return c.validateOn(ctx, i, config)
}

func (c *Client) validateOn(ctx context.Context, i *instance, config *pluginv1.Config) ([]Diagnostic, error) {
	var answer *pluginv1.ValidateConfigResponse
	err := c.invokeOn(ctx, i, c.timing.call, "", "ValidateConfig", func(ctx context.Context, i *instance) (err error) {
		answer, err = pluginv1.NewPluginClient(i.conn).ValidateConfig(ctx, &pluginv1.ValidateConfigRequest{Config: config})
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.check.diagnostics(answer.GetDiagnostics()), nil
}
