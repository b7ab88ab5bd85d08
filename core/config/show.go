package config

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// hidden stands where a value must not be shown.
const hidden = "(hidden)"

// Effective writes the configuration with every default filled in, as HCL. Sensitive values and credentials are hidden.
func (c *Config) Effective() []byte {
	file := hclwrite.NewEmptyFile()
	w := writer{file.Body()}
	w.host(&c.Host)
	for _, p := range c.Plugins {
		w.plugin(p)
	}
	for _, p := range c.Providers {
		w.provider(p)
	}
	return hclwrite.Format(file.Bytes())
}

type writer struct{ *hclwrite.Body }

func (w writer) block(name string, labels ...string) writer {
	if len(w.Attributes())+len(w.Blocks()) > 0 {
		w.AppendNewline()
	}
	return writer{w.AppendNewBlock(name, labels).Body()}
}

func (w writer) text(name, value string) {
	if value != "" {
		w.SetAttributeValue(name, cty.StringVal(value))
	}
}

func (w writer) texts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	list := make([]cty.Value, len(values))
	for i, v := range values {
		list[i] = cty.StringVal(v)
	}
	w.SetAttributeValue(name, cty.ListVal(list))
}

func (w writer) number(name string, value int) {
	w.SetAttributeValue(name, cty.NumberIntVal(int64(value)))
}

func (w writer) flag(name string, value bool) { w.SetAttributeValue(name, cty.BoolVal(value)) }

func (w writer) duration(name string, value time.Duration) { w.text(name, short(value)) }

func (w writer) host(h *Host) {
	w.text("plugin_dir", h.PluginDir)
	listen := w.block("listen")
	listen.text("address", h.Listen.Address)
	listen.text("auth", string(h.Listen.Auth))
	listen.flag("allow_remote", h.Listen.AllowRemote)
	listen.texts("hosts", h.Listen.Hosts)
	listen.text("tls_cert", h.Listen.TLSCert)
	listen.text("tls_key", h.Listen.TLSKey)
	state := w.block("state")
	state.text("dir", h.State.Dir)
	state.number("max_bindings", h.State.MaxBindings)
	state.duration("idle", h.State.Idle)
	w.block("telemetry").duration("refresh", h.Telemetry.Refresh)
	w.block("placement").SetAttributeValue("fit", cty.NumberFloatVal(h.Placement.Fit))
	limits := w.block("limits")
	limits.text("body", sizeText(h.Limits.Body))
	limits.text("replay_memory", sizeText(h.Limits.ReplayMemory))
	limits.number("connections", h.Limits.Connections)
	limits.duration("header_time", h.Limits.HeaderTime)
	limits.duration("hold_time", h.Limits.HoldTime)
	limits.duration("drain", h.Limits.Drain)
	log := w.block("log")
	log.text("level", h.Log.Level)
	log.text("format", string(h.Log.Format))
	if h.Metrics.Address != "" {
		w.block("metrics").text("address", h.Metrics.Address)
	}
}

func (w writer) plugin(p Plugin) {
	b := w.block("plugin", p.Name)
	b.text("path", p.Path)
	b.text("sha256", p.SHA256)
	if p.Dev {
		b.flag("dev", true)
	}
	b.texts("environment", p.Environment)
}

func (w writer) provider(p Provider) {
	b := w.block("provider", p.Name)
	b.text("plugin", p.Plugin)
	b.attributes(p.Config.GetProviderJson(), p.sensitive)
	for _, a := range p.Accounts {
		account := b.block("account", a.Name)
		account.flag("enabled", a.Enabled)
		account.texts("models", a.Models)
		account.text("overage", string(a.Overage))
		settings := pluginAccount(p, a.Name)
		account.attributes(settings.GetConfigJson(), p.accountSensitive)
		account.credential(settings.GetCredential())
	}
}

// attributes writes a plugin's block from its JSON.
func (w writer) attributes(raw []byte, sensitive []string) {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(sensitive, name) {
			w.text(name, hidden)
			continue
		}
		kind, err := ctyjson.ImpliedType(values[name])
		if err != nil {
			continue
		}
		if value, err := ctyjson.Unmarshal(values[name], kind); err == nil {
			w.SetAttributeValue(name, value)
		}
	}
}

func (w writer) credential(c *pluginv1.Credential) {
	switch source := c.GetSource().(type) {
	case *pluginv1.Credential_Value:
		w.block("credential").text("env", hidden)
	case *pluginv1.Credential_File:
		w.block("credential").text("file", source.File)
	case *pluginv1.Credential_Command:
		w.block("credential").texts("command", source.Command.GetArgv())
	}
}

// sensitiveNames are the attributes of a schema whose values are secrets.
func sensitiveNames(s *pluginv1.Schema) (names []string) {
	for _, a := range s.GetAttributes() {
		if a.GetSensitive() {
			names = append(names, a.GetName())
		}
	}
	return names
}
