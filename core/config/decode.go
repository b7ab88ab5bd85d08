package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/noria-dev/noria/core/internal/printable"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// Decode reads the blocks of providers by the schemas of their plugins. Three states of a provider are told apart: no entry
// in schemas means that there is no such plugin, which is an error here; a nil entry means that the plugin exists and could
// not be described, which the caller reports (see [File.At]) and which leaves Provider.Config nil. The diagnostics are those
// of this step; Parse gave its own. The configuration is nil when either had errors.
func (f *File) Decode(schemas map[string]*pluginv1.DescribeResponse) (*Config, Diagnostics) {
	parsed := len(f.found)
	defer func() { f.found = f.found[:parsed] }()
	config := &Config{Host: f.Host}
	for _, block := range f.providers {
		description, known := schemas[block.Name]
		if !known {
			f.fail(&block.Header, "Unknown provider", "No plugin named %q is bundled or configured.%s",
				block.Plugin, withoutPlugin(block, slices.Sorted(maps.Keys(schemas))))
			continue
		}
		config.Providers = append(config.Providers, f.decodeProvider(block, description))
	}
	found := f.render(f.found[parsed:])
	if f.found.HasErrors() {
		return nil, found
	}
	return config, found
}

// withoutPlugin says what to do about a provider that no plugin serves.
func withoutPlugin(block *providerBlock, known []string) string {
	if meant := didYouMean(block.Name, known); meant != "" {
		return meant + " Add a plugin block for it, or set plugin to the name of one."
	}
	return fmt.Sprintf(" Bundled ones are executables beside noria itself, and noria-provider-%s is not there. %s", block.Plugin,
		"Put it there, add a plugin block for it, or set plugin to the name of one.")
}

func (f *File) decodeProvider(block *providerBlock, description *pluginv1.DescribeResponse) Provider {
	provider := Provider{Name: block.Name, Plugin: block.Plugin}
	for _, a := range block.Accounts {
		provider.Accounts = append(provider.Accounts, Account{
			Name: a.Name, Enabled: a.enabled(), Models: a.Models, Overage: a.overage(),
		})
	}
	if description == nil {
		return provider
	}
	if served := description.GetProvider(); served != block.Name {
		f.fail(&block.Header, "Wrong plugin", "Plugin %q serves provider %q, not %q.",
			block.Plugin, printable.Bounded(served, 64), block.Name)
		return provider
	}
	ofProvider, err := newSchema(description.GetConfigSchema(), hostProviderNames, []string{"account"})
	if err != nil {
		f.fail(&block.Header, "Unusable plugin", "The schema of plugin %q for its provider block cannot be used: %v.", block.Plugin, err)
		return provider
	}
	ofAccount, err := newSchema(description.GetAccountSchema(), hostAccountNames, []string{"credential"})
	if err != nil {
		f.fail(&block.Header, "Unusable plugin", "The schema of plugin %q for account blocks cannot be used: %v.", block.Plugin, err)
		return provider
	}
	provider.sensitive = sensitiveNames(description.GetConfigSchema())
	provider.accountSensitive = sensitiveNames(description.GetAccountSchema())
	provider.Config = &pluginv1.Config{ProviderJson: f.bySchema(block.Remain, ofProvider)}
	for _, a := range block.Accounts {
		provider.Config.Accounts = append(provider.Config.Accounts, &pluginv1.Account{
			Name: a.Name, Enabled: a.enabled(), Models: a.Models,
			ConfigJson: f.bySchema(a.Remain, ofAccount), Credential: f.credential(a),
		})
	}
	return provider
}

// AccountsEnabled counts the accounts of a provider that are enabled in the file.
func (f *File) AccountsEnabled(provider string) (n int) {
	if block := f.provider(provider); block != nil {
		for _, a := range block.Accounts {
			if a.enabled() {
				n++
			}
		}
	}
	return n
}

// At places a diagnostic at an attribute of an account (or of the provider's own block, when account is empty); without an
// attribute at the block's header. What the file does not have is placed as near as possible.
func (f *File) At(provider, account, attribute string, d Diagnostic) Diagnostic {
	block := f.provider(provider)
	if block == nil {
		return d
	}
	at, body := block.Header, block.Remain
	if a := block.account(account); account != "" && a != nil {
		at, body = a.Header, a.Remain
	}
	if attribute != "" {
		if value, set := setRange(body, attribute); set {
			at = value
		} else {
			d.Detail = strings.TrimSpace(fmt.Sprintf("%s (about the attribute %q, which is not set)", d.Detail, printable.Bounded(attribute, 64)))
		}
	}
	d.Range, d.Snippet = f.place(at)
	return d
}

// AtBlock places a diagnostic at an attribute of one of the host's own blocks, at the block's header when the attribute is not
// set. A block that is not in the file leaves it without a place.
func (f *File) AtBlock(block, attribute string, d Diagnostic) Diagnostic {
	i := slices.IndexFunc(f.body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == block })
	if i < 0 {
		return d
	}
	return f.atAttribute(f.body.Blocks[i].DefRange(), f.body.Blocks[i].Body, attribute, d)
}

// AtPlugin places a diagnostic at an attribute of a plugin's block, at the block's header when the attribute is not set, and
// where the provider that it serves is configured when there is no such block.
func (f *File) AtPlugin(plugin, provider, attribute string, d Diagnostic) Diagnostic {
	i := slices.IndexFunc(f.plugins, func(b *pluginBlock) bool { return b.Name == plugin })
	if i < 0 {
		return f.At(provider, "", "", d)
	}
	return f.atAttribute(f.plugins[i].Header, f.plugins[i].Body, attribute, d)
}

// atAttribute places a diagnostic at an attribute of a block, at the header when it is not set.
func (f *File) atAttribute(header hcl.Range, body hcl.Body, attribute string, d Diagnostic) Diagnostic {
	at, set := setRange(body, attribute)
	if !set {
		at = header
	}
	d.Range, d.Snippet = f.place(at)
	return d
}

func setRange(body hcl.Body, attribute string) (hcl.Range, bool) {
	attributes := syntaxBody(body).Attributes
	if a, ok := attributes[attribute]; ok {
		return a.Expr.Range(), true
	}
	return hcl.Range{}, false
}
