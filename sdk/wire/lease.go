package wire

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// Lease is credential headers for one account, held in memory only. It prints as [redacted] with every verb of fmt, in
// JSON and in slog.
type Lease struct {
	BaseURL    string
	Set        []Header
	Remove     []string
	Extend     []Header
	ValidUntil time.Time
	Generation string
}

const redacted = "[redacted]"

func (Lease) String() string               { return redacted }
func (Lease) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(redacted)) }
func (Lease) MarshalJSON() ([]byte, error) { return json.Marshal(redacted) }
func (Lease) LogValue() slog.Value         { return slog.StringValue(redacted) }

// Header is one header of a lease. It prints as its name.
type Header struct{ Name, Value string }

func (h Header) String() string               { return h.Name + ": " + redacted }
func (h Header) Format(f fmt.State, _ rune)   { _, _ = f.Write([]byte(h.String())) }
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal(h.String()) }
func (h Header) LogValue() slog.Value         { return slog.StringValue(h.String()) }
