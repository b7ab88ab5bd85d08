package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

var errLater = errors.New("not built yet")

// Host runs adapters. It is safe for concurrent use.
type Host struct{ *Catalog }

// New returns a host that runs nothing yet.
func New(options Options) (*Host, error) { return nil, errLater }

// Apply makes the running adapters those of specs: new ones are started, changed ones are started beside the old one and
// swapped when ready (when the new one fails, the old one stays, with its old configuration), others are drained and
// stopped. It returns when each has come so far or ctx ended; what failed is supervised further.
func (h *Host) Apply(ctx context.Context, specs []Spec) []Result { return nil }

// Validate asks the plugin about a configuration; nothing is applied. A plugin that is not running is started for it.
func (h *Host) Validate(ctx context.Context, spec Spec) ([]Diagnostic, error) { return nil, errLater }

// Client returns the client of a provider; the same one while the provider is among the specs.
func (h *Host) Client(provider string) (*Client, error) { return nil, errLater }

// List returns all adapters, by name.
func (h *Host) List() []Info { return nil }

// Restart starts a new process, also of an adapter that failed for good, and returns when it is ready or failed.
func (h *Host) Restart(ctx context.Context, name string) error { return errLater }

// RefreshQuota probes the account at once and returns when that probe ended.
func (h *Host) RefreshQuota(ctx context.Context, account quota.AccountID) error { return errLater }

// Close drains and stops everything. When ctx ends first the processes are killed.
func (h *Host) Close(ctx context.Context) error { return errLater }

// Client calls the adapter of one provider, with the deadlines of the protocol, and checks its answers. It outlives the
// process behind it and is safe for concurrent use. Errors: ErrAway while there is no process, ErrUnknown for an account
// that is not configured and enabled, ErrNotOffered, ErrBadAnswer.
type Client struct{}

// Provider that it serves.
func (c *Client) Provider() string { return "" }

// Profile is the last profile received; ok is false while there never was one. It must not be changed.
func (c *Client) Profile() (profile *providerv1.Profile, ok bool) { return nil, false }

// Offers reports whether the adapter serves the service, by full name.
func (c *Client) Offers(service string) bool { return false }

// Lease gives the cached lease of the account without any call when it is valid, else asks the adapter and waits at most
// five seconds. Errors also: *RefusedError.
func (c *Client) Lease(ctx context.Context, account string) (wire.Lease, error) {
	return wire.Lease{}, errLater
}

// RefreshLease drops the lease that was refused upstream, if it is still the cached one, and gives a renewed one.
func (c *Client) RefreshLease(ctx context.Context, account string, refused wire.Lease) (wire.Lease, error) {
	return wire.Lease{}, errLater
}

// DropLease forgets the lease of the account, after connect and disconnect.
func (c *Client) DropLease(account string) {}

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
	return Verdict{}, errLater
}

// Observe hands telemetry over and returns at once. It is coalesced, newest per account and model, and comes back
// through Hooks.OnWindows at most once a second per account, at once when a header that the profile calls urgent
// changed.
func (c *Client) Observe(account string, observation *providerv1.ObserveRequest, sentAt time.Time) {}

// Unavailable shapes the host's own answer.
func (c *Client) Unavailable(ctx context.Context, req *providerv1.UnavailableRequest) (*providerv1.Answer, error) {
	return nil, errLater
}

// AuthStatus tells about the login of an account.
type AuthStatus struct {
	State    providerv1.AuthState
	Method   string
	Eligible bool
	// Reason why it is not eligible.
	Reason string
}

// CheckAuth asks about the login of an account.
func (c *Client) CheckAuth(ctx context.Context, account string) (AuthStatus, error) {
	return AuthStatus{}, errLater
}

// Command is a command line for the user's own terminal. Environment is set and Unset removed for its invocation.
type Command struct {
	Argv        []string
	Environment map[string]string
	Unset       []string
}

// LoginCommand gives the official login command of an account.
func (c *Client) LoginCommand(ctx context.Context, account string) (Command, error) {
	return Command{}, errLater
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
	return ModelCatalog{}, errLater
}

// LaunchFlags names the flags of the official client that LaunchCommand must see.
func (c *Client) LaunchFlags(ctx context.Context) ([]string, error) { return nil, errLater }

// LaunchCommand gives the command that starts the official client behind the host.
func (c *Client) LaunchCommand(ctx context.Context, req *providerv1.LaunchCommandRequest) (Command, error) {
	return Command{}, errLater
}

// SignRequest gives the headers that depend on one request.
func (c *Client) SignRequest(ctx context.Context, account, method, path string, bodySHA256 [32]byte) ([]wire.Header, error) {
	return nil, errLater
}

// RefreshQuota probes the account at once and returns when that probe ended.
func (c *Client) RefreshQuota(ctx context.Context, account string) error { return errLater }
