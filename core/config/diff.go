package config

import (
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// Change is one difference between two configurations. It names settings, never their values.
type Change struct {
	// What changed, such as telemetry.refresh, provider.claude, or provider.claude.account.work.
	What string     `json:"what"`
	How  ChangeKind `json:"how"`
	// Restart: it takes effect only when the daemon is started anew.
	Restart bool `json:"restart,omitempty"`
}

// ChangeKind is a way to differ.
type ChangeKind string

// Ways to differ.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Diff lists what differs in after, in the order of the configuration; nil when nothing does.
func Diff(before, after *Config) []Change {
	var d differences
	// What the daemon opens or starts with stays until it is started anew; the rest is applied by a reload.
	d.listen(before.Listen, after.Listen)
	d.setting("state.dir", before.State.Dir, after.State.Dir, true)
	d.setting("state.max_bindings", before.State.MaxBindings, after.State.MaxBindings, false)
	d.setting("state.idle", before.State.Idle, after.State.Idle, false)
	d.setting("telemetry.refresh", before.Telemetry.Refresh, after.Telemetry.Refresh, false)
	d.setting("placement.fit", before.Placement.Fit, after.Placement.Fit, false)
	x, y := before.Limits, after.Limits
	d.setting("limits.body", x.Body, y.Body, false)
	d.setting("limits.replay_memory", x.ReplayMemory, y.ReplayMemory, false)
	d.setting("limits.connections", x.Connections, y.Connections, false)
	d.setting("limits.header_time", x.HeaderTime, y.HeaderTime, true)
	d.setting("limits.hold_time", x.HoldTime, y.HoldTime, false)
	d.setting("limits.drain", x.Drain, y.Drain, false)
	d.setting("log.level", before.Log.Level, after.Log.Level, false)
	d.setting("log.format", before.Log.Format, after.Log.Format, true)
	d.setting("metrics", before.Metrics, after.Metrics, false)
	d.setting("plugin_dir", before.PluginDir, after.PluginDir, true)
	named(&d, "plugin", before.Plugins, after.Plugins,
		func(p Plugin) string { return p.Name },
		func(what string, x, y Plugin) { d.setting(what, x, y, false) })
	named(&d, "provider", before.Providers, after.Providers,
		func(p Provider) string { return p.Name },
		func(what string, x, y Provider) { d.provider(what, x, y) })
	return d.changes
}

// InForce is after as a daemon that runs with before can apply it: what takes effect only when it is started anew stays. Both
// are left as they are.
func InForce(before, after *Config) *Config {
	c := *after
	c.Listen = before.Listen
	if before.Listen.TLSCert != "" && after.Listen.TLSCert != "" {
		c.Listen.TLSCert, c.Listen.TLSKey = after.Listen.TLSCert, after.Listen.TLSKey
	}
	c.State.Dir = before.State.Dir
	c.Limits.HeaderTime = before.Limits.HeaderTime
	c.Log.Format = before.Log.Format
	c.PluginDir = before.PluginDir
	return &c
}

type differences struct{ changes []Change }

func (d *differences) setting(what string, x, y any, restart bool) {
	if !reflect.DeepEqual(x, y) {
		d.changes = append(d.changes, Change{What: what, How: Changed, Restart: restart})
	}
}

// listen tells of the files of TLS apart: others can be read while the daemon runs, if it had some.
func (d *differences) listen(x, y Listen) {
	files := func(l Listen) [2]string { return [2]string{l.TLSCert, l.TLSKey} }
	d.setting("listen.tls", files(x), files(y), (x.TLSCert == "") != (y.TLSCert == ""))
	x.TLSCert, x.TLSKey, y.TLSCert, y.TLSKey = "", "", "", ""
	d.setting("listen", x, y, true)
}

func (d *differences) provider(what string, x, y Provider) {
	if x.Plugin != y.Plugin || string(x.Config.GetProviderJson()) != string(y.Config.GetProviderJson()) {
		d.changes = append(d.changes, Change{What: what, How: Changed})
	}
	named(d, what+".account", x.Accounts, y.Accounts,
		func(a Account) string { return a.Name },
		func(what string, a, b Account) {
			if !reflect.DeepEqual(a, b) || !proto.Equal(pluginAccount(x, a.Name), pluginAccount(y, a.Name)) {
				d.changes = append(d.changes, Change{What: what, How: Changed})
			}
		})
}

func pluginAccount(p Provider, name string) *pluginv1.Account {
	for _, a := range p.Config.GetAccounts() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// named compares two lists whose elements have names.
func named[T any](d *differences, kind string, before, after []T, name func(T) string, both func(what string, x, y T)) {
	for _, x := range before {
		if !slices.ContainsFunc(after, func(y T) bool { return name(y) == name(x) }) {
			d.changes = append(d.changes, Change{What: fmt.Sprintf("%s.%s", kind, name(x)), How: Removed})
		}
	}
	for _, y := range after {
		what := fmt.Sprintf("%s.%s", kind, name(y))
		i := slices.IndexFunc(before, func(x T) bool { return name(x) == name(y) })
		if i < 0 {
			d.changes = append(d.changes, Change{What: what, How: Added})
			continue
		}
		both(what, before[i], y)
	}
}
