package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/internal/calls"
	"github.com/noria-dev/noria/core/internal/clock"
)

// Options are what a Proxy is built from. All but the fields marked optional are needed.
type Options struct {
	State    State
	Adapters Adapters
	Events   Events
	Clock    clock.Clock
	Logger   hclog.Logger
	// Keys knows the client keys. nil together with AuthNone lets every client in.
	Keys KeyChecker
	// AuthNone turns client keys off. The caller sees to it that the listeners are on loopback.
	AuthNone bool
	// Hosts are names, beside localhost and the addresses that are connected to, under which clients may address the
	// daemon; optional.
	Hosts  []string
	Limits Limits
	// Providers lists the configured providers, whether their adapters are ready or not. It is asked once per request.
	Providers func() []string
	// Ready answers /readyz with a JSON body.
	Ready func() (ready bool, body []byte)
	// Location of times in sentences for people; optional, UTC if nil.
	Location *time.Location
}

// KeyChecker knows the client keys.
type KeyChecker interface {
	// Allowed reports whether key may use provider. It takes the same time for every wrong key.
	Allowed(provider, key string) bool
}

// Limits bound what clients and upstreams may ask of the daemon. A field that is not above zero takes the default.
type Limits struct {
	// Body of one request, in bytes.
	Body int64
	// ReplayMemory over all requests and held streams, in bytes. A request beyond it streams once and cannot fail over.
	ReplayMemory int64
	// Connections of clients at a time, over all listeners.
	Connections int
	// HeaderTime until the header of a request must have come.
	HeaderTime time.Duration
	// BodyTime without progress of a request's body.
	BodyTime time.Duration
	// WriteTime of one write to a client.
	WriteTime time.Duration
	// IdleTime of a client's connection between requests.
	IdleTime time.Duration
	// HoldTime and HoldBytes of the beginning of a stream before it is committed.
	HoldTime  time.Duration
	HoldBytes int
	// Attempts of one request, and AttemptTime after which none is started any more.
	Attempts    int
	AttemptTime time.Duration
	// AdapterTime that a request waits for an adapter that never was ready.
	AdapterTime time.Duration
}

// DefaultLimits are used for what Limits leaves out.
func DefaultLimits() Limits {
	return Limits{
		Body:         64 << 20,
		ReplayMemory: 256 << 20,
		Connections:  1024,
		HeaderTime:   10 * time.Second,
		BodyTime:     30 * time.Second,
		WriteTime:    30 * time.Second,
		IdleTime:     2 * time.Minute,
		HoldTime:     15 * time.Second,
		HoldBytes:    1 << 20,
		Attempts:     8,
		AttemptTime:  30 * time.Second,
		AdapterTime:  5 * time.Second,
	}
}

// withDefaults fills what is left out.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	fill(&l.Body, d.Body)
	fill(&l.ReplayMemory, d.ReplayMemory)
	fill(&l.Connections, d.Connections)
	fill(&l.HeaderTime, d.HeaderTime)
	fill(&l.BodyTime, d.BodyTime)
	fill(&l.WriteTime, d.WriteTime)
	fill(&l.IdleTime, d.IdleTime)
	fill(&l.HoldTime, d.HoldTime)
	fill(&l.HoldBytes, d.HoldBytes)
	fill(&l.Attempts, d.Attempts)
	fill(&l.AttemptTime, d.AttemptTime)
	fill(&l.AdapterTime, d.AdapterTime)
	return l
}

func fill[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Proxy serves clients. It is safe for concurrent use.
type Proxy struct {
	state     State
	adapters  Adapters
	events    Events
	clock     clock.Clock
	log       hclog.Logger
	keys      KeyChecker
	hosts     []string
	providers func() []string
	ready     func() (bool, []byte)
	location  *time.Location

	limits      atomic.Pointer[Limits]
	server      *http.Server
	running     calls.Running
	connections *connectionLimit
	transports  *transports
	memory      memory
	buffers     *piecePool
	decoders    decoders
	detours     detours
	judged      judgements
	requests    requestIDs
	attempts    atomic.Uint64
	completions atomic.Uint64
}

// requestIDs are unique over restarts: some random digits per process, then a count.
type requestIDs struct {
	process string
	count   atomic.Uint64
}

func (r *requestIDs) next() string {
	return r.process + "-" + strconv.FormatUint(r.count.Add(1), 16)
}

// missing names the first option that is needed and not there, empty if none is.
func (o *Options) missing() string {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"State", o.State != nil}, {"Adapters", o.Adapters != nil}, {"Events", o.Events != nil}, {"Clock", o.Clock != nil},
		{"Logger", o.Logger != nil}, {"Providers", o.Providers != nil}, {"Ready", o.Ready != nil},
	} {
		if !option.set {
			return option.name
		}
	}
	return ""
}

// New returns a Proxy that serves nothing yet.
func New(o Options) (*Proxy, error) {
	if name := o.missing(); name != "" {
		return nil, fmt.Errorf("build proxy: option %s is missing", name)
	}
	if o.Keys == nil && !o.AuthNone {
		return nil, errors.New("build proxy: no client keys, and auth is not none")
	}
	p := &Proxy{
		state: o.State, adapters: o.Adapters, events: o.Events, clock: o.Clock, log: o.Logger, keys: o.Keys,
		providers: o.Providers, ready: o.Ready, location: o.Location,
		transports: newTransports(), buffers: newPiecePool(), connections: newConnectionLimit(),
	}
	for _, host := range o.Hosts {
		p.hosts = append(p.hosts, strings.ToLower(host))
	}
	var process [4]byte
	// crypto/rand never fails since Go 1.24.
	_, _ = rand.Read(process[:])
	p.requests.process = hex.EncodeToString(process[:])
	if o.AuthNone {
		p.keys = nil
	}
	if p.location == nil {
		p.location = time.UTC
	}
	p.SetLimits(o.Limits)
	p.server = p.newServer()
	return p, nil
}

// SetLimits replaces the limits for requests that come from now on. HeaderTime and IdleTime are those of New.
func (p *Proxy) SetLimits(l Limits) {
	l = l.withDefaults()
	p.limits.Store(&l)
	p.connections.set(l.Connections)
}
