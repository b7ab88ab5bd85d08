package sdk

import (
	"strings"

	"github.com/noria-dev/noria/sdk/wire"
)

// ErrUpstream is returned for a URL to which no credential may be sent.
var ErrUpstream = wire.ErrUpstream

// ParseUpstream checks a base URL for [Lease.BaseURL] and returns it without a slash at its end. Error: [ErrUpstream].
func ParseUpstream(text string) (string, error) {
	if _, err := wire.ParseUpstream(text); err != nil {
		return "", err
	}
	return strings.TrimRight(text, "/"), nil
}
