package sdk

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// ErrUpstream is returned for a URL to which no credential may be sent.
var ErrUpstream = errors.New("must be an https URL, or http on loopback, without user, query or fragment")

// ParseUpstream checks a base URL for [Lease.BaseURL] and returns it without a slash at its end. Error: [ErrUpstream].
func ParseUpstream(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return "", ErrUpstream
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())) {
		return "", ErrUpstream
	}
	return strings.TrimRight(text, "/"), nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
