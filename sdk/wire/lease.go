package wire

import "time"

// Lease is credential headers for one account, held in memory only. It prints as [redacted].
type Lease struct {
	BaseURL    string
	Set        []Header
	Remove     []string
	Extend     []Header
	ValidUntil time.Time
	Generation string
}

// String keeps a lease out of logs and errors.
func (Lease) String() string { return "[redacted]" }

// GoString keeps a lease out of logs and errors.
func (Lease) GoString() string { return "[redacted]" }

// Header is one header of a lease.
type Header struct{ Name, Value string }

// String keeps a header value out of logs and errors.
func (h Header) String() string { return h.Name + ": [redacted]" }

// GoString keeps a header value out of logs and errors.
func (h Header) GoString() string { return h.String() }
