package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

type (
	pluginBlock struct {
		Name        string    `hcl:"name,label"`
		Path        string    `hcl:"path,optional"`
		SHA256      string    `hcl:"sha256,optional"`
		Dev         bool      `hcl:"dev,optional"`
		Environment []string  `hcl:"environment,optional"`
		Header      hcl.Range `hcl:",def_range"`
		Body        hcl.Body  `hcl:",body"`
	}
	providerBlock struct {
		Name     string          `hcl:"name,label"`
		Plugin   string          `hcl:"plugin,optional"`
		Accounts []*accountBlock `hcl:"account,block"`
		Header   hcl.Range       `hcl:",def_range"`
		Remain   hcl.Body        `hcl:",remain"`
	}
	accountBlock struct {
		Name       string           `hcl:"name,label"`
		Enabled    *bool            `hcl:"enabled,optional"`
		Models     []string         `hcl:"models,optional"`
		Overage    *string          `hcl:"overage,optional"`
		Credential *credentialBlock `hcl:"credential,block"`
		Header     hcl.Range        `hcl:",def_range"`
		Remain     hcl.Body         `hcl:",remain"`
	}
	credentialBlock struct {
		Env     *string   `hcl:"env,optional"`
		File    *string   `hcl:"file,optional"`
		Command []string  `hcl:"command,optional"`
		Header  hcl.Range `hcl:",def_range"`
		Body    hcl.Body  `hcl:",body"`
	}
)

// What the host itself defines in a provider's and in an account's block; a plugin's schema may not name these.
var (
	hostProviderNames = []string{"plugin", "account"}
	hostAccountNames  = []string{"enabled", "models", "overage", "credential"}
)

var (
	accountName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hexDigest      = regexp.MustCompile(`^[0-9a-f]{64}$`)
	variableName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?)*$`)
	reservedRoutes = []string{"k", "healthz", "readyz"}
)

const (
	maxAccounts = 256
	maxModels   = 64
	maxHosts    = 64
)

func (f *File) pluginBlocks(blocks []*pluginBlock) {
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		if !wire.IsName(b.Name) {
			f.fail(&b.Header, "Invalid name", "A plugin's name has small letters, digits and dashes, and at most 32 characters.")
			continue
		}
		if f.duplicate(seen, "plugin", b.Name, b.Header) {
			continue
		}
		f.Plugins = append(f.Plugins, f.plugin(b))
		f.plugins = append(f.plugins, b)
	}
}

func (f *File) plugin(b *pluginBlock) Plugin {
	p := Plugin{Name: b.Name, Path: f.expand(b.Path), SHA256: strings.ToLower(b.SHA256), Dev: b.Dev, Environment: b.Environment}
	pinned := b.SHA256 != ""
	switch {
	case pinned && !hexDigest.MatchString(p.SHA256):
		f.fail(valueRange(b.Body, "sha256"), "Invalid digest", "sha256 has 64 hexadecimal digits; \"noria plugins pin %s\" prints it.", b.Name)
	case p.Path != "" && !pinned && !b.Dev:
		f.fail(&b.Header, "Plugin without digest",
			"A plugin that is not bundled needs sha256; \"noria plugins pin %s\" prints it. While you write the plugin, dev = true waives it.", b.Name)
	}
	if p.Path == "" && (pinned || b.Dev) {
		p.Path = filepath.Join(f.PluginDir, "noria-provider-"+b.Name)
	}
	for _, name := range b.Environment {
		if !variableName.MatchString(name) {
			f.fail(valueRange(b.Body, "environment"), "Invalid name", "environment lists the names of variables, without values.")
			break
		}
	}
	return p
}

func (f *File) providerBlocks(blocks []*providerBlock) {
	seen := map[string]hcl.Range{}
	for _, b := range blocks {
		switch {
		case !wire.IsName(b.Name):
			f.fail(&b.Header, "Invalid name", "A provider's name has small letters, digits and dashes, and at most 32 characters.")
			continue
		case slices.Contains(reservedRoutes, b.Name):
			f.fail(&b.Header, "Invalid name", "/%s is a path of the proxy itself, so no provider can have that name.", b.Name)
			continue
		case f.duplicate(seen, "provider", b.Name, b.Header):
			continue
		}
		if b.Plugin == "" {
			b.Plugin = b.Name
		} else if !wire.IsName(b.Plugin) {
			f.fail(valueRange(b.Remain, "plugin"), "Invalid name", "plugin is the name of a plugin, such as %q.", b.Name)
		}
		f.accountBlocks(b)
		f.providers = append(f.providers, b)
		f.Providers = append(f.Providers, ProviderName{Name: b.Name, Plugin: b.Plugin})
	}
}

func (f *File) accountBlocks(p *providerBlock) {
	seen := map[string]hcl.Range{}
	kept := p.Accounts[:0:0]
	for _, b := range p.Accounts {
		if !accountName.MatchString(b.Name) {
			f.fail(&b.Header, "Invalid name", "An account's name has letters, digits, dots, dashes and underscores, and at most 64 characters.")
			continue
		}
		if f.duplicate(seen, "account", b.Name, b.Header) {
			continue
		}
		f.checkAccount(b)
		kept = append(kept, b)
	}
	p.Accounts = kept
	if len(kept) > maxAccounts {
		f.fail(&p.Header, "Too many accounts", "A provider has at most %d accounts.", maxAccounts)
	}
}

func (f *File) checkAccount(b *accountBlock) {
	if b.Overage != nil {
		f.oneOf(b.Remain, "overage", *b.Overage, string(OverageAvoid), string(OverageAllow))
	}
	if len(b.Models) > maxModels {
		f.fail(valueRange(b.Remain, "models"), "Too many models", "models has at most %d entries; a * stands for any characters.", maxModels)
	}
	for _, model := range b.Models {
		if model == "" || len(model) > 128 {
			f.fail(valueRange(b.Remain, "models"), "Invalid model", "models lists exact names, or patterns with *, of at most 128 characters.")
			break
		}
	}
	if b.Credential != nil {
		f.checkCredential(b.Credential, b.enabled())
	}
}

func (f *File) checkCredential(b *credentialBlock, enabled bool) {
	sources := 0
	if b.Env != nil {
		sources++
		if !variableName.MatchString(*b.Env) {
			f.fail(valueRange(b.Body, "env"), "Invalid name", "env is the name of an environment variable, not its value.")
		}
	}
	if b.File != nil {
		sources++
		if enabled {
			f.readable(b.Body, "file", *b.File)
		}
	}
	if b.Command != nil {
		sources++
		if len(b.Command) == 0 || b.Command[0] == "" {
			f.fail(valueRange(b.Body, "command"), "Empty command", "command is a list: the program, then its arguments.")
		}
	}
	if sources != 1 {
		f.fail(&b.Header, "Ambiguous credential", "A credential has exactly one of env, file and command.")
	}
}

func (f *File) duplicate(seen map[string]hcl.Range, kind, name string, header hcl.Range) bool {
	first, twice := seen[name]
	if twice {
		f.fail(&header, "Duplicate "+kind, "%s %q is already at %s:%d. Give this one another name, or merge the two.",
			strings.ToUpper(kind[:1])+kind[1:], name, first.Filename, first.Start.Line)
		return true
	}
	seen[name] = header
	return false
}

// readable complains about a file that cannot be read; an empty path is none.
func (f *File) readable(body hcl.Body, attribute, path string) {
	if path == "" {
		return
	}
	file, err := openRegular(f.expand(path))
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		f.fail(valueRange(body, attribute), "Cannot read the file",
			"%q cannot be opened: %v. A relative path begins at the configuration file.", path, cause(err))
	}
}

// cause is an error of the file system without the path, which is said in the user's own words.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func (b *accountBlock) enabled() bool { return b.Enabled == nil || *b.Enabled }

func (b *accountBlock) overage() Overage {
	if b.Overage == nil {
		return OverageAvoid
	}
	return Overage(*b.Overage)
}

// credential resolves what the host resolves. A disabled account needs none.
func (f *File) credential(b *accountBlock) *pluginv1.Credential {
	switch c := b.Credential; {
	case c == nil || !b.enabled():
		return nil
	case c.Env != nil:
		if !variableName.MatchString(*c.Env) {
			return nil // said already
		}
		value := os.Getenv(*c.Env)
		if value == "" {
			f.fail(valueRange(c.Body, "env"), "No credential",
				"Environment variable %q is not set where noria was started. Set it there, or set enabled = false.", *c.Env)
			return nil
		}
		return &pluginv1.Credential{Source: &pluginv1.Credential_Value{Value: value}}
	case c.File != nil:
		return &pluginv1.Credential{Source: &pluginv1.Credential_File{File: f.expand(*c.File)}}
	case len(c.Command) > 0:
		argv := slices.Clone(c.Command)
		if strings.Contains(argv[0], "/") {
			argv[0] = f.expand(argv[0])
		}
		return &pluginv1.Credential{Source: &pluginv1.Credential_Command{Command: &pluginv1.Command{Argv: argv}}}
	}
	return nil
}

func (b *providerBlock) account(name string) *accountBlock {
	for _, a := range b.Accounts {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (f *File) provider(name string) *providerBlock {
	for _, p := range f.providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}
