package plugin

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/clock"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Spec says which adapter to run and with what. It is a constant: Apply compares it with the one before.
type Spec struct {
	// Name of the plugin in noria.hcl and in its own description.
	Name string
	// Provider that it serves.
	Provider string
	// Path of the executable, absolute.
	Path string
	// SHA256 that the executable must have, in hex; needed unless Bundled or Dev.
	SHA256 string
	// Bundled: beside noria's own executable.
	Bundled bool
	// Dev waives the digest; it is warned about at every start.
	Dev bool
	// Reattach is the line that an executable prints with -debug; it needs Dev. The host then attaches to the running
	// process instead of starting one.
	Reattach string
	// Environment variables, by exact name, that the configuration allows beside the usual ones. Only those that the
	// plugin itself names in its description are passed on, and never a key, token or base URL.
	Environment []string
	// Disabled: known and shown, not run.
	Disabled bool
	// Config holds credentials: never log it.
	Config *pluginv1.Config
}

// Options of a Host.
type Options struct {
	Catalog CatalogOptions
	// RunDir is a directory for the sockets of adapters: private, its path at most 65 bytes long. It is swept when the
	// host starts, so no other process may use it.
	RunDir      string
	HostVersion string
	// Refresh is the interval of quota probes; 0 means 45 seconds.
	Refresh time.Duration
	// Clock stamps what is reported; nil means the wall clock.
	Clock clock.Clock
	Hooks Hooks
}

// CatalogOptions say where executables are.
type CatalogOptions struct {
	// Logger of the host; lines of an adapter go to the sublogger plugin.NAME. nil means none.
	Logger hclog.Logger
	// Redactor of whatever an adapter writes; nil means one that knows shapes only.
	Redactor *events.Redactor
	// PluginDir holds plugins that are not bundled.
	PluginDir string
	// BundledDir holds bundled ones; empty means the directory of this executable.
	BundledDir string
	// CacheDir is a private directory for verified copies.
	CacheDir string
}

// Hooks take what adapters report. Each may be nil, must return soon, must be safe for concurrent use and must not wait
// for the host.
type Hooks struct {
	// OnWindows takes checked readings.
	OnWindows func(WindowReport)
	// OnAuthState takes what a probe sent at sentAt said about the login of an account.
	OnAuthState func(account quota.AccountID, state providerv1.AuthState, sentAt time.Time)
	// OnProbe takes the end of every quota probe; a failed one changes nothing.
	OnProbe func(ProbeReport)
	// OnGeneration takes a lease whose generation is another one than the last known (empty: none was known): the login
	// behind the account changed, so authentication blockers are void.
	OnGeneration func(account quota.AccountID, before, after string)
	// OnLateLease takes the coming of a lease after somebody was told that it is late.
	OnLateLease func(account quota.AccountID)
	// OnProfile takes the profile of every newly ready adapter before its client uses it, where an error fails the start
	// for good; and again, when after a reading the adapter declares other windows for an account.
	OnProfile func(provider string, profile *providerv1.Profile) error
	// OnState takes every change of an adapter's state.
	OnState func(Info)
}

// WindowReport holds readings of one account from one source.
type WindowReport struct {
	Account  quota.AccountID
	Readings []quota.Reading
	// SentAt is when the probe, or the request whose answer carried the readings, was sent.
	SentAt time.Time
	// Completion orders observations of an account; 0 for probes.
	Completion uint64
}

// ProbeReport is the end of one quota probe.
type ProbeReport struct {
	Account quota.AccountID
	SentAt  time.Time
	// Err is nil when the probe was answered.
	Err error
}

// State of a supervised adapter.
type State string

// States.
const (
	StateDisabled    State = "disabled"
	StateStarting    State = "starting"
	StateConfiguring State = "configuring"
	StateReady       State = "ready"
	StateDraining    State = "draining"
	StateBackoff     State = "backoff"
	StateFailed      State = "failed"
	StateStopped     State = "stopped"
)

// DigestState is the result of comparing an executable with the configured digest.
type DigestState string

// Digest states.
const (
	DigestOK       DigestState = "ok"
	DigestMismatch DigestState = "mismatch"
	// DigestUnpinned: a digest is needed and none is configured.
	DigestUnpinned DigestState = "unpinned"
	// DigestDev: the check is waived.
	DigestDev DigestState = "dev"
	// DigestUnknown: the file could not be read.
	DigestUnknown DigestState = "unknown"
)

// Info is what is known of one adapter.
type Info struct {
	Name     string
	Provider string
	// Version and SDK as the adapter describes itself; empty before it did.
	Version, SDK string
	State        State
	// PID and StartedAt of the present process.
	PID       int
	StartedAt time.Time
	// Restarts counts starts after an unwanted end.
	Restarts int
	// Accounts enabled.
	Accounts int
	// SHA256 of the executable as it was last verified.
	SHA256 string
	Digest DigestState
	// Source is bundled, or the path below the plugin directory, or the whole path.
	Source string
	Path   string
	Dev    bool
	// Failure is why it is not ready, or why a reload of it failed; nil when all is well.
	Failure *Failure
	// RetryAt of an adapter in backoff, or failed by its breaker.
	RetryAt     time.Time
	Services    []string
	Environment []string
	// DroppedLines of its output that went over the rate.
	DroppedLines uint64
	// Stderr holds its last lines, sanitized.
	Stderr []string
}

// Result of applying one spec.
type Result struct {
	Name string
	// Err is nil once the adapter is ready, or was stopped, or was left alone; else a *Failure or ctx's error.
	Err error
}
