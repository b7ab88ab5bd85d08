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

// Credential says where an account's credential comes from when that is not the official client's home. At most one of
// its fields is set. It prints as [redacted].
type Credential struct {
	Value   string
	File    string
	Command []string
}

// ErrNoCredential is returned when an account configures none.
var ErrNoCredential = errors.New("no credential configured")

// IsZero reports whether nothing is configured.
func (c Credential) IsZero() bool { return c.Value == "" && c.File == "" && len(c.Command) == 0 }
