package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
)

type (
	listenBlock struct {
		Address     string   `hcl:"address,optional"`
		Auth        string   `hcl:"auth,optional"`
		AllowRemote bool     `hcl:"allow_remote,optional"`
		Hosts       []string `hcl:"hosts,optional"`
		TLSCert     string   `hcl:"tls_cert,optional"`
		TLSKey      string   `hcl:"tls_key,optional"`
		Body        hcl.Body `hcl:",body"`
	}
	stateBlock struct {
		Dir         string   `hcl:"dir,optional"`
		MaxBindings int      `hcl:"max_bindings,optional"`
		Idle        string   `hcl:"idle,optional"`
		Body        hcl.Body `hcl:",body"`
	}
	telemetryBlock struct {
		Refresh string   `hcl:"refresh,optional"`
		Body    hcl.Body `hcl:",body"`
	}
	placementBlock struct {
		Fit  float64  `hcl:"fit,optional"`
		Body hcl.Body `hcl:",body"`
	}
	limitsBlock struct {
		Body_        string   `hcl:"body,optional"`
		ReplayMemory string   `hcl:"replay_memory,optional"`
		Connections  int      `hcl:"connections,optional"`
		HeaderTime   string   `hcl:"header_time,optional"`
		HoldTime     string   `hcl:"hold_time,optional"`
		Drain        string   `hcl:"drain,optional"`
		Body         hcl.Body `hcl:",body"`
	}
	logBlock struct {
		Level  string   `hcl:"level,optional"`
		Format string   `hcl:"format,optional"`
		Body   hcl.Body `hcl:",body"`
	}
	metricsBlock struct {
		Address string   `hcl:"address,optional"`
		Body    hcl.Body `hcl:",body"`
	}
)

// defaults are the values of everything that a file leaves out.
func (f *File) defaults() *root {
	return &root{
		Listen:    &listenBlock{Address: "127.0.0.1:4517", Auth: string(AuthKey)},
		State:     &stateBlock{Dir: defaultStateDir(), MaxBindings: 100_000, Idle: "720h"},
		Telemetry: &telemetryBlock{Refresh: "45s"},
		Placement: &placementBlock{Fit: 0.5},
		Limits: &limitsBlock{
			Body_: "64MiB", ReplayMemory: "512MiB", Connections: 1024,
			HeaderTime: "10s", HoldTime: "15s", Drain: "60s",
		},
		Log:       &logBlock{Level: "info", Format: string(LogText)},
		Metrics:   &metricsBlock{},
		PluginDir: defaultPluginDir(),
	}
}

func (f *File) listen(b *listenBlock) Listen {
	l := Listen{
		Address: b.Address, Auth: Auth(b.Auth), AllowRemote: b.AllowRemote,
		Hosts: f.hosts(b), TLSCert: f.expand(b.TLSCert), TLSKey: f.expand(b.TLSKey),
	}
	f.oneOf(b.Body, "auth", b.Auth, string(AuthKey), string(AuthNone))
	f.keyPair(b)
	at := valueRange(b.Body, "address")
	loopback, ok := f.address(at, b.Address)
	if !ok || loopback {
		return l
	}
	switch {
	case !l.AllowRemote:
		f.fail(at, "Address beyond this machine",
			"%s is not a loopback address. Listen on 127.0.0.1, or set allow_remote = true together with auth = \"key\" and TLS.", b.Address)
	case l.Auth == AuthNone:
		f.fail(valueRange(b.Body, "auth"), "No key beyond this machine",
			"auth = \"none\" is for loopback only. Use auth = \"key\" for %s.", b.Address)
	case l.TLSCert == "":
		f.fail(at, "No TLS beyond this machine", "Set tls_cert and tls_key for %s; keys and prompts would travel in the clear.", b.Address)
	}
	return l
}

// hosts are names under which clients may address the proxy, as they stand in a Host header.
func (f *File) hosts(b *listenBlock) []string {
	at := valueRange(b.Body, "hosts")
	if len(b.Hosts) > maxHosts {
		f.fail(at, "Too many hosts", "hosts has at most %d names.", maxHosts)
	}
	var hosts []string
	for _, host := range b.Hosts {
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		switch {
		case err == nil && ip.Is6() && ip.Zone() == "":
			hosts = append(hosts, "["+ip.String()+"]")
		case err == nil && ip.Is4():
			hosts = append(hosts, ip.String())
		case hostName.MatchString(host):
			hosts = append(hosts, strings.ToLower(host))
		default:
			f.fail(at, "Invalid host", "%q is no host name. hosts lists names or addresses without scheme and port, such as \"noria.example\".", host)
		}
	}
	return hosts
}

// keyPair checks the files of TLS.
func (f *File) keyPair(b *listenBlock) {
	before := len(f.found)
	if (b.TLSCert == "") != (b.TLSKey == "") {
		f.fail(valueRange(b.Body, "tls_cert"), "Half a key pair", "Set both tls_cert and tls_key, or neither.")
	}
	f.readable(b.Body, "tls_cert", b.TLSCert)
	f.readable(b.Body, "tls_key", b.TLSKey)
	if b.TLSCert == "" || len(f.found) > before {
		return
	}
	if _, err := tls.LoadX509KeyPair(f.expand(b.TLSCert), f.expand(b.TLSKey)); err != nil {
		f.fail(valueRange(b.Body, "tls_cert"), "Unusable key pair",
			"%v. tls_cert is a PEM file with the certificate and its chain, tls_key one with its private key.", err)
	}
}

// address checks host:port and reports whether the host is on loopback.
func (f *File) address(at *hcl.Range, address string) (loopback, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		f.fail(at, "Invalid address", "%q is not HOST:PORT, such as 127.0.0.1:4517.", address)
		return false, false
	}
	if host == "localhost" {
		return true, true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		f.fail(at, "Invalid address", "The host of %q must be an IP address or localhost.", address)
		return false, false
	}
	return ip.IsLoopback(), true
}

func (f *File) metrics(b *metricsBlock) Metrics {
	if b.Address != "" {
		at := valueRange(b.Body, "address")
		if loopback, ok := f.address(at, b.Address); ok && !loopback {
			f.fail(at, "Address beyond this machine", "Metrics are served on loopback only, such as on 127.0.0.1:4518.")
		}
	}
	return Metrics{Address: b.Address}
}

func (f *File) state(b *stateBlock) State {
	s := State{
		Dir:         f.expand(b.Dir),
		MaxBindings: b.MaxBindings,
		Idle:        f.duration(b.Body, "idle", b.Idle, time.Hour, 10*365*24*time.Hour),
	}
	if b.Dir == "" {
		f.fail(valueRange(b.Body, "dir"), "Empty path", "Name a directory, or leave dir out for %s.", defaultStateDir())
		s.Dir = defaultStateDir()
	}
	f.between(b.Body, "max_bindings", b.MaxBindings, 1, 10_000_000)
	f.stateDir = valueRange(b.Body, "dir")
	f.socketsFit(s.Dir)
	return s
}

func (f *File) telemetry(b *telemetryBlock) Telemetry {
	return Telemetry{Refresh: f.duration(b.Body, "refresh", b.Refresh, 30*time.Second, 300*time.Second)}
}

func (f *File) placement(b *placementBlock) Placement {
	if b.Fit < 0 || b.Fit > 1 {
		f.fail(valueRange(b.Body, "fit"), "Value out of range", "fit is between 0 and 1; 0.5 is the default.")
	}
	return Placement{Fit: b.Fit}
}

func (f *File) limits(b *limitsBlock) Limits {
	f.between(b.Body, "connections", b.Connections, 1, 1_000_000)
	l := Limits{
		Body:         f.size(b.Body, "body", b.Body_, 1<<20, 1<<30),
		ReplayMemory: f.size(b.Body, "replay_memory", b.ReplayMemory, 1<<20, 1<<40),
		Connections:  b.Connections,
		HeaderTime:   f.duration(b.Body, "header_time", b.HeaderTime, time.Second, 5*time.Minute),
		HoldTime:     f.duration(b.Body, "hold_time", b.HoldTime, time.Second, 4*time.Minute),
		Drain:        f.duration(b.Body, "drain", b.Drain, 0, 24*time.Hour),
	}
	return l
}

func (f *File) log(b *logBlock) Log {
	f.oneOf(b.Body, "level", b.Level, "trace", "debug", "info", "warn", "error", "off")
	f.oneOf(b.Body, "format", b.Format, string(LogText), string(LogJSON))
	return Log{Level: b.Level, Format: LogFormat(b.Format)}
}

func (f *File) between(body hcl.Body, name string, value, low, high int) {
	if value < low || value > high {
		f.fail(valueRange(body, name), "Value out of range", "%s is between %d and %d.", name, low, high)
	}
}

func (f *File) oneOf(body hcl.Body, name, value string, allowed ...string) {
	if slices.Contains(allowed, value) {
		return
	}
	f.fail(valueRange(body, name), "Invalid value", "%s is one of %s.%s", name, quotedList(allowed), didYouMean(value, allowed))
}

func (f *File) duration(body hcl.Body, name, value string, low, high time.Duration) time.Duration {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		f.fail(valueRange(body, name), "Invalid duration", "%s is a number with a unit, such as \"45s\", \"10m\" or \"720h\".", name)
	case d < low || d > high:
		f.fail(valueRange(body, name), "Value out of range", "%s is between %s and %s.", name, short(low), short(high))
	}
	return d
}

// short writes 5m0s as 5m.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (f *File) size(body hcl.Body, name, value string, low, high int64) int64 {
	n, ok := parseSize(value)
	switch {
	case !ok:
		f.fail(valueRange(body, name), "Invalid size", "%s is a whole number with a unit, such as \"64MiB\"; units are B, KiB, MiB and GiB.", name)
	case n < low || n > high:
		f.fail(valueRange(body, name), "Value out of range", "%s is between %s and %s.", name, sizeText(low), sizeText(high))
	}
	return n
}

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseSize(s string) (int64, bool) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(s, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit.bytes {
			return 0, false
		}
		return n * unit.bytes, true
	}
	return 0, false
}

func sizeText(n int64) string {
	for _, unit := range sizeUnits {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// expand makes a path of the file absolute: ~ is the home, what is relative is so to the file.
func (f *File) expand(path string) string { return expand(filepath.Dir(f.Path), path) }
