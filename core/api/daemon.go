package api

import (
	"context"
	"fmt"
	"io"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// Daemon is what the control API serves. Every method is safe for concurrent use and keeps ctx. Errors that the caller can
// do something about are *Error; any other becomes CodeInternal.
type Daemon interface {
	Version() VersionInfo
	Status(ctx context.Context) (Status, error)
	// Accounts in configuration order.
	Accounts(ctx context.Context) ([]Account, error)
	// SetAccountEnabled turns the operator's switch, durably.
	SetAccountEnabled(ctx context.Context, account quota.AccountID, enabled bool) (Account, error)
	// RefreshAccounts reads the quota of these accounts now, of all when none is named, and returns when that is done.
	RefreshAccounts(ctx context.Context, accounts []quota.AccountID) ([]Account, error)

	// Connect begins a login: what is known of the account's quota is void from now on, and the answer is the official
	// client's command for it. Connected ends it, whatever became of it, and reads the account anew.
	Connect(ctx context.Context, account quota.AccountID) (LoginPlan, error)
	Connected(ctx context.Context, account quota.AccountID) (Account, error)

	// Sessions, most recently used first.
	Sessions(ctx context.Context, filter SessionFilter) ([]Session, error)
	// Session finds one by key, identity or hash, or a unique beginning of these.
	Session(ctx context.Context, subject string) (SessionDetail, error)
	// MoveSession binds all models of a session to an account, by the operator's word.
	MoveSession(ctx context.Context, subject string, account quota.AccountID) (SessionDetail, error)
	ForgetSession(ctx context.Context, subject string) error

	Plugins(ctx context.Context) ([]Plugin, error)
	Plugin(ctx context.Context, name string) (PluginDetail, error)
	// RestartPlugin starts a new process, also of a plugin that failed for good.
	RestartPlugin(ctx context.Context, name string) (Plugin, error)

	Explain(ctx context.Context, req ExplainRequest) (Explanation, error)
	// Forecast for a new session of that provider and model (empty: any).
	Forecast(ctx context.Context, provider, model string) (placement.Forecast, error)
	// Events after that sequence, oldest first, at most limit.
	Events(ctx context.Context, after uint64, limit int) ([]Event, error)
	// WatchEvents sends events after that sequence as they come until ctx ends or send fails.
	WatchEvents(ctx context.Context, after uint64, send func(FollowedEvent) error) error

	// Reload reads the configuration again. A configuration with errors is no error of Reload.
	Reload(ctx context.Context) (ReloadResult, error)
	Token(ctx context.Context) (Token, error)
	// RotateToken makes another client key; the old one is refused from then on.
	RotateToken(ctx context.Context, req RotateRequest) (Token, error)
	CreateRunKey(ctx context.Context, req RunKeyRequest) (RunKey, error)
	RevokeRunKey(ctx context.Context, id string) error
	LaunchFlags(ctx context.Context, provider string) (LaunchFlags, error)
	Launch(ctx context.Context, req LaunchRequest) (LaunchPlan, error)

	// ExportState writes all bindings as JSON.
	ExportState(ctx context.Context, w io.Writer) error
	// ImportState takes over exported bindings, all or none.
	ImportState(ctx context.Context, r io.Reader) (StateImport, error)
}

// Code says what kind of error it is.
type Code string

// Codes, each with one HTTP status.
const (
	CodeInvalid     Code = "invalid"     // 400
	CodeNotFound    Code = "not_found"   // 404
	CodeAmbiguous   Code = "ambiguous"   // 409
	CodeRefused     Code = "refused"     // 409
	CodeUnsupported Code = "unsupported" // 501: the plugin does not offer it
	CodeUnavailable Code = "unavailable" // 503: not now, such as while draining or with the adapter away
	CodeInternal    Code = "internal"    // 500
)

// Error is an error of the control API. Message says what failed, Remedy what to do; neither holds a credential.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + "; " + e.Remedy
}

// Errorf makes an Error without a remedy.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
