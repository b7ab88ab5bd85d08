package sdk

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// redacted is what everything that holds a credential prints, whatever the verb.
const redacted = "[redacted]"

// Secret is a string for attributes that hold a credential. It decodes like a string, its attribute is sensitive, and it
// prints as [redacted] with every verb of fmt, in JSON and in slog. string(s) is the value.
type Secret string

func (Secret) String() string               { return redacted }
func (Secret) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }

func (Lease) String() string               { return redacted }
func (Lease) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (Lease) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (Lease) LogValue() slog.Value         { return slog.StringValue(redacted) }

func (Credential) String() string               { return redacted }
func (Credential) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (Credential) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (Credential) LogValue() slog.Value         { return slog.StringValue(redacted) }

// An account prints as its name, a configuration as the number of its accounts: their blocks may hold secrets.

func (a Account) String() string               { return "account " + a.Name }
func (a Account) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(a.String())) }
func (a Account) MarshalJSON() ([]byte, error) { return json.Marshal(a.Name) }
func (a Account) LogValue() slog.Value         { return slog.StringValue(a.Name) }

func (c Config) String() string               { return fmt.Sprintf("configuration of %d accounts", len(c.Accounts)) }
func (c Config) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(c.String())) }
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
func (c Config) LogValue() slog.Value         { return slog.StringValue(c.String()) }
