package config

import (
	"time"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// Config is the whole configuration: every default filled in, every path absolute, every value in range. It is a
// constant: a reload makes a new one.
type Config struct {
	Host
	// Providers in configuration order.
	Providers []Provider
}

// Host is what the host itself is configured with. It is known before any plugin is asked for its schema.
type Host struct {
	// Path of the file it was read from, absolute.
	Path      string
	Listen    Listen
	State     State
	Telemetry Telemetry
	Placement Placement
	Limits    Limits
	Log       Log
	Metrics   Metrics
	// PluginDir holds plugins that are not bundled.
	PluginDir string
	Plugins   []Plugin
}

// Auth says how the proxy listener knows its clients.
type Auth string

// Ways to know clients.
const (
	AuthKey  Auth = "key"
	AuthNone Auth = "none"
)

// Listen is the proxy listener.
type Listen struct {
	// Address is host:port, the host an IP address or localhost.
	Address     string
	Auth        Auth
	AllowRemote bool
	// Hosts are names, beside the daemon's own addresses and localhost, under which clients may address it.
	Hosts []string
	// TLSCert and TLSKey are files; empty: plain HTTP.
	TLSCert, TLSKey string
}

// State is where durable facts are kept, and how many.
type State struct {
	Dir         string
	MaxBindings int
	// Idle is how long a binding is kept without use.
	Idle time.Duration
}

// Telemetry says how often quota is read.
type Telemetry struct {
	Refresh time.Duration
}

// Placement holds the one knob of the score.
type Placement struct {
	// Fit is φ of the score: how much of a new session's expected work must fit, 0 to 1.
	Fit float64
}

// Limits bound what clients may ask of the daemon.
type Limits struct {
	// Body of one request, in bytes.
	Body int64
	// ReplayMemory over all requests, in bytes; a request beyond it streams once and cannot fail over.
	ReplayMemory int64
	Connections  int
	// HeaderTime until the header of a request must have come.
	HeaderTime time.Duration
	// HoldTime that the beginning of a stream may be held before it is committed.
	HoldTime time.Duration
	// Drain is how long streams may go on after the daemon was told to stop.
	Drain time.Duration
}

// LogFormat of the daemon's log.
type LogFormat string

// Formats of logs.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Log is the daemon's log.
type Log struct {
	// Level is trace, debug, info, warn, error or off.
	Level  string
	Format LogFormat
}

// Metrics is the separate listener for /metrics; an empty address: none.
type Metrics struct {
	Address string
}

// Plugin is an executable that is not bundled, or what is allowed to one that is.
type Plugin struct {
	Name string
	// Path of the executable; empty for a bundled plugin.
	Path string
	// SHA256 in lower case hex; empty with Dev, and for bundled plugins.
	SHA256 string
	// Dev waives the digest.
	Dev bool
	// Environment variables that the plugin may see beside the usual ones, by exact name.
	Environment []string
}

// Provider is one upstream family, served by one plugin.
type Provider struct {
	Name string
	// Plugin is the name of the plugin that serves it.
	Plugin string
	// Accounts in configuration order, disabled ones included.
	Accounts []Account
	// Plugin configuration by the plugin's schema. It holds credentials that the host resolved: never log it. nil when
	// the plugin could not be described.
	Config *pluginv1.Config

	// Attributes that are never shown.
	sensitive, accountSensitive []string
}

// Overage says what becomes of an account whose allowance is used up while its provider goes on for extra money.
type Overage string

// Choices for overage.
const (
	OverageAvoid Overage = "avoid"
	OverageAllow Overage = "allow"
)

// Account is what the host itself knows of an account.
type Account struct {
	Name    string
	Enabled bool
	// Models, exact or with *, that it may serve; empty: all.
	Models  []string
	Overage Overage
}

// Provider returns the provider of that name.
func (c *Config) Provider(name string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}
