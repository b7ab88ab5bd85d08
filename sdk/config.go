package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Config is the whole configuration of a provider.
type Config struct {
	// Generation grows with every configuration.
	Generation uint64
	Accounts   []Account

	provider json.RawMessage
}

// NewConfig makes a Config as the host would, for tests; provider is marshalled as the provider block.
func NewConfig(provider any, accounts ...Account) (Config, error) {
	raw, err := json.Marshal(provider)
	if err != nil {
		return Config{}, fmt.Errorf("marshal provider block: %w", err)
	}
	for i := range accounts {
		accounts[i].provider = raw
	}
	return Config{Accounts: accounts, provider: raw}, nil
}

// Decode decodes the provider block into the struct that Descriptor.Config names.
func (c Config) Decode(into any) error { return decodeBlock(c.provider, into) }

// Account is one of the user's accounts as configured.
type Account struct {
	Name    string
	Enabled bool
	// Models the account may serve; empty: all.
	Models     []string
	Credential Credential

	config, provider json.RawMessage
}

// NewAccount makes an Account as the host would, for tests; config is marshalled as the account block.
func NewAccount(name string, config any, credential Credential) (Account, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return Account{}, fmt.Errorf("marshal account block: %w", err)
	}
	return Account{Name: name, Enabled: true, Credential: credential, config: raw}, nil
}

// Decode decodes the account block into the struct that Descriptor.Account names.
func (a Account) Decode(into any) error { return decodeBlock(a.config, into) }

// DecodeProvider decodes the provider block that the account stands in.
func (a Account) DecodeProvider(into any) error { return decodeBlock(a.provider, into) }

// Credential is the credential block of an account in noria.hcl, which every provider's accounts may have without a word
// in the schema. At most one of its fields is set, and none when there is no block. [Credentials.Read] reads it. It prints
// as [redacted].
type Credential struct {
	// Value is what the host found in the variable that credential { env = "NAME" } names. In the fixtures of
	// sdk/plugintest it is given as it is.
	Value string
	// File is the path in credential { file = "PATH" }, made absolute.
	File string
	// Command is the argv in credential { command = ["PROGRAM", "ARGUMENT"] }; its standard output is the credential.
	Command []string
}

// ErrNoCredential is returned when an account configures none.
var ErrNoCredential = errors.New("no credential configured")

// IsZero reports whether nothing is configured.
func (c Credential) IsZero() bool { return c.Value == "" && c.File == "" && len(c.Command) == 0 }
