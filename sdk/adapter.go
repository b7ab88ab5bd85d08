package sdk

import (
	"context"
	"net/http"
	"time"
)

// Adapter is what an author writes. All methods but Describe may be called concurrently, and are given a context whose
// deadline is the daemon's: Lease 5 s, Classify 1 s, Observe 2 s, ReadQuota 15 s, everything else 10 s. An error other than
// [Refuse] makes is temporary; its text is for the daemon's log and holds no credential and nothing from outside.
type Adapter interface {
	// Describe has no side effects; two calls give equal answers.
	Describe() Descriptor
	// Lease hands out the credential headers of one account. An error made with [Refuse] says why there are none; any
	// other error counts as temporary.
	Lease(ctx context.Context, account Account, req LeaseRequest) (Lease, error)
	// Classify says what a failed response or an inspected stream event means.
	Classify(ctx context.Context, account Account, resp Response) (Verdict, error)
	// Observe turns exposed headers and telemetry events of answers into windows.
	Observe(ctx context.Context, account Account, obs Observation) ([]Window, error)
}

// The optional interfaces below are found by type assertion; those that stand for a service are advertised to the host.
type (
	// Configurer is told of every configuration after it was validated and before an account of it is used.
	Configurer interface {
		Configure(ctx context.Context, config Config) error
	}
	// Validator checks a configuration beyond its schema and applies nothing. It sees enabled accounts only.
	Validator interface {
		Validate(ctx context.Context, config Config) []Diagnostic
	}
	// WindowDeclarer says which windows one account has, when that differs from [Profile.Windows]. It is asked after every
	// configuration, and again when a reading by ReadQuota or WatchQuota showed other windows than it had declared: an
	// adapter that cannot know before its first reading declares what is usual until then.
	WindowDeclarer interface {
		Windows(account Account) (windows []WindowDeclaration, unmetered bool)
	}
	// QuotaReader reads windows from a structured official source without spending anything.
	QuotaReader interface {
		ReadQuota(ctx context.Context, account Account) (QuotaReading, error)
	}
	// QuotaWatcher sends readings as they come until ctx ends.
	QuotaWatcher interface {
		WatchQuota(ctx context.Context, send func(account string, reading QuotaReading) error) error
	}
	// AuthChecker tells about the login of an account.
	AuthChecker interface {
		CheckAuth(ctx context.Context, account Account) (AuthStatus, error)
	}
	// LoginCommander gives the official login command, which the user's own terminal runs.
	LoginCommander interface {
		LoginCommand(ctx context.Context, account Account) (Command, error)
	}
	// ModelLister lists what the official client says can be used.
	ModelLister interface {
		ListModels(ctx context.Context, account Account) (Catalog, error)
	}
	// Launcher starts the official client behind the host for one invocation.
	Launcher interface {
		// LaunchFlags names flags of the client, each with one value, that LaunchCommand must see.
		LaunchFlags() []string
		LaunchCommand(ctx context.Context, req LaunchRequest) (Command, error)
	}
	// Signer signs requests of providers whose credentials cannot be leased. A host that signs no requests refuses an
	// adapter that is one, as they would go out unsigned; Noria's does so far.
	Signer interface {
		SignRequest(ctx context.Context, account Account, req SignRequest) (http.Header, error)
	}
	// Unavailabler shapes the host's answer when nobody can serve; without it the profile's templates do.
	Unavailabler interface {
		Unavailable(ctx context.Context, req Unavailability) (Answer, error)
	}
	// Drainer is told to finish; ctx carries the deadline.
	Drainer interface {
		Drain(ctx context.Context) error
	}
)

// Descriptor says what an adapter is.
type Descriptor struct {
	// Name of the plugin: [a-z][a-z0-9-]{0,31}.
	Name string
	// Version by semantic versioning.
	Version string
	// Provider that it serves; empty: Name.
	Provider string
	// Config and Account are values (or nil pointers) of the structs that the provider and account blocks of noria.hcl
	// decode into. Their tags are the schema: `hcl:"endpoint" default:"…" doc:"…"`, with the options required and
	// sensitive after the name. nil: no attributes.
	Config, Account any
	// Environment variables that it would like to see, by exact name. The host decides.
	Environment []string
	Profile     Profile
}

// LeaseRequest says why a lease is asked for.
type LeaseRequest struct {
	// Refresh: the last lease was refused upstream; renew it by the official way if there is one.
	Refresh bool
	// RefusedGeneration is the generation of that lease.
	RefusedGeneration string
}

// Lease is what the host puts on requests for one account until ValidUntil. It prints as [redacted].
type Lease struct {
	// BaseURL of the upstream: https, or http on loopback.
	BaseURL string
	// Set replaces headers of the client, Remove takes them away, Extend adds a value to a comma separated list.
	Set    map[string]string
	Remove []string
	Extend map[string]string
	// ValidUntil is capped by the host at five minutes; zero: the cap.
	ValidUntil time.Time
	// Generation changes when the login behind the lease changed, and says nothing of the credential.
	Generation string
}

// Response is the evidence for Classify: an HTTP answer of status 400 or more, or an inspected event of a stream.
type Response struct {
	// Model that was asked for, and the kind of the route that the request took.
	Model string
	Route RouteKind
	// RequestHeader, RequestFields (by JSON pointer) and Header hold what the profile exposes and nothing else.
	RequestHeader http.Header
	RequestFields map[string]string
	Status        int
	Header        http.Header
	// Body is the beginning of the answer, decoded and at most Exposure.ErrorBodyBytes long; with Event there is none.
	Body []byte
	// Event is the inspected event; nil for an answer of status 400 or more.
	Event *Event
	// Committed: the client has something of this answer already.
	Committed  bool
	ObservedAt time.Time
}

// Event is one event of a stream.
type Event struct {
	Type string
	Data []byte
}

// Verdict is the reading of a Response.
type Verdict struct {
	Outcome Outcome
	Scope   Scope
	// Model with ScopeModel; empty: that of the request.
	Model string
	// Reason is a short code in snake_case, without text from outside.
	Reason string
	// ClearsAt is zero when unknown.
	ClearsAt time.Time
	// RetryAfter with OutcomeThrottled; 0 unknown.
	RetryAfter time.Duration
	// WindowID of the window that was rejected, if it was named.
	WindowID string
	Windows  []Window
}

// Observation is exposed telemetry of answers of one account.
type Observation struct {
	Model      string
	Status     int
	Header     http.Header
	Events     []Event
	ObservedAt time.Time
	// Completion orders observations of an account; a greater one is newer.
	Completion uint64
}

// Window is one quota clock as a source reported it. What is absent is unknown, never zero. State, Source and ObservedAt
// may be left out: then a window with a percentage is observed and one without is unknown, the source is the one that the
// method reads from, and the time is that of the observation, for ReadQuota that of the call.
type Window struct {
	ID   string
	Kind WindowKind
	// Length is 0 when the provider states none.
	Length time.Duration
	// Models or patterns with * when the window is scoped.
	Models []string
	// UsedPercent is nil when unknown.
	UsedPercent *float64
	// ResetsAt is zero when unknown.
	ResetsAt   time.Time
	State      WindowState
	Source     Source
	ObservedAt time.Time
	Label      string
}

// QuotaReading is the answer of a structured official source.
type QuotaReading struct {
	Windows []Window
	Auth    AuthState
}

// AuthStatus tells about the login of an account.
type AuthStatus struct {
	State AuthState
	// Method in the provider's own word.
	Method string
	// Eligible for automatic subscription routing; else Reason says why not.
	Eligible bool
	Reason   string
}

// Command is a command line for the user's own terminal.
type Command struct {
	Argv []string
	// Env is set and Unset removed for this invocation.
	Env   map[string]string
	Unset []string
}

// LaunchRequest asks for the command line of the official client. argv holds one element {{args}} where the user's own
// arguments go; argv and Env may hold {{base_url}} and {{no_proxy}}, Env also {{key}}.
type LaunchRequest struct {
	// Native: the user asks for the client's own provider (noria run PROVIDER -native), for a client that can have one
	// of Noria's beside its own.
	Native bool
	// Seen are the user's values of the flags that LaunchFlags named.
	Seen []FlagValue
	// Statusline is the argv of the host's statusline command; empty: none.
	Statusline []string
}

// FlagValue is a flag of the official client as the user gave it.
type FlagValue struct{ Flag, Value string }

// Catalog lists models.
type Catalog struct {
	Models        []Model
	ClientVersion string
	Source        string
	ReadAt        time.Time
}

// Model is one entry of a Catalog.
type Model struct {
	ID, DisplayName string
	Efforts         []string
	DefaultEffort   string
	Default, Hidden bool
	Upgrade         string
}

// SignRequest is what a Signer signs.
type SignRequest struct {
	Method, Path string
	BodySHA256   [32]byte
}

// Unavailability says why nobody can serve a request.
type Unavailability struct {
	RequestID string
	Route     RouteKind
	Model     string
	Streaming bool
	Causes    map[Cause]int
	// GoverningWindow is empty when mixed or unknown.
	GoverningWindow string
	ForecastAt      time.Time
	ForecastKind    ForecastKind
	// Sentence in plain words.
	Sentence string
	Now      time.Time
}

// Passing reports whether an account is out for trouble that nobody dates and that may be over at any moment: the network,
// a credential that cannot be had now, throttling without a known end. A client should then be free to ask again by
// itself: an answer that ends its turn, or that it takes for a spent allowance, keeps it from an account that can serve.
func (u Unavailability) Passing() bool {
	undated := u.Causes[CauseNetwork] + u.Causes[CauseCredential]
	if u.ForecastKind != ForecastExact {
		undated += u.Causes[CauseThrottled]
	}
	return undated > 0
}

// Severity of a Diagnostic.
type Severity int

// Severities.
const (
	SeverityError   Severity = 1
	SeverityWarning Severity = 2
)

// Diagnostic is a finding about a configuration.
type Diagnostic struct {
	Severity Severity
	// Summary is one line without a full stop, Detail says what to do.
	Summary, Detail string
	// Account and Attribute say where; empty: the provider block, the whole block.
	Account, Attribute string
}
