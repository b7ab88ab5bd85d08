package wire

import (
	"errors"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// ErrUpstream is returned for a URL to which no credential may be sent.
var ErrUpstream = errors.New("must be an https URL, or http on loopback, without user, query or fragment")

// ParseUpstream checks the base URL of a lease. Error: [ErrUpstream].
func ParseUpstream(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return nil, ErrUpstream
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !IsLoopback(u.Hostname())) {
		return nil, ErrUpstream
	}
	return u, nil
}

// IsLoopback reports whether a host is this machine whatever a name server says: a loopback address, or localhost.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// MaxAttributes is how many attributes the schema of a block may have.
const MaxAttributes = 64

var (
	namePattern      = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	attributePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// IsName reports whether a text can name a plugin or a provider.
func IsName(text string) bool { return namePattern.MatchString(text) }

// IsAttribute reports whether a text can name an attribute of a plugin's schema.
func IsAttribute(text string) bool { return attributePattern.MatchString(text) }

// Scopes lists what an outcome may be about; none: the outcome is not known. The first is taken when an adapter names
// none and there is no other.
func Scopes(outcome providerv1.Outcome) []providerv1.Scope {
	const (
		account  = providerv1.Scope_SCOPE_ACCOUNT
		model    = providerv1.Scope_SCOPE_MODEL
		request  = providerv1.Scope_SCOPE_REQUEST
		provider = providerv1.Scope_SCOPE_PROVIDER
	)
	switch outcome {
	case providerv1.Outcome_OUTCOME_ACCEPTED, providerv1.Outcome_OUTCOME_CLIENT_ERROR,
		providerv1.Outcome_OUTCOME_CONTINUITY_LOST, providerv1.Outcome_OUTCOME_UNKNOWN_ERROR:
		return []providerv1.Scope{request}
	case providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, providerv1.Outcome_OUTCOME_NOT_ENTITLED:
		return []providerv1.Scope{account, model}
	case providerv1.Outcome_OUTCOME_AUTH_FAILED:
		return []providerv1.Scope{account}
	case providerv1.Outcome_OUTCOME_THROTTLED:
		return []providerv1.Scope{account, request}
	case providerv1.Outcome_OUTCOME_OVERLOADED:
		return []providerv1.Scope{provider}
	}
	return nil
}
