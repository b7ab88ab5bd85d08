package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Reason says in a fixed word why an adapter is not ready.
type Reason string

// Reasons.
const (
	ReasonNotFound       Reason = "not_found"
	ReasonUntrustedFile  Reason = "untrusted_file"
	ReasonUnpinned       Reason = "unpinned"
	ReasonDigestMismatch Reason = "digest_mismatch"
	ReasonCopyFailed     Reason = "copy_failed"
	ReasonExecFailed     Reason = "exec_failed"
	ReasonStartTimeout   Reason = "start_timeout"
	// ReasonExited: the process ended by itself, before or after it was ready.
	ReasonExited Reason = "exited"
	// ReasonHandshake: the first line of output is no handshake.
	ReasonHandshake         Reason = "handshake_malformed"
	ReasonHandshakeVersion  Reason = "handshake_version"
	ReasonHandshakeNetwork  Reason = "handshake_network"
	ReasonHandshakeAddress  Reason = "handshake_address"
	ReasonHandshakeProtocol Reason = "handshake_protocol"
	ReasonHandshakeTLS      Reason = "handshake_certificate"
	ReasonConnect           Reason = "connect_failed"
	ReasonInit              Reason = "init_failed"
	// ReasonIdentity: it serves another provider than the one it is configured for.
	ReasonIdentity Reason = "identity_mismatch"
	// ReasonProtocol: it does not serve what every adapter must.
	ReasonProtocol Reason = "protocol_mismatch"
	// ReasonSigner: it signs requests, which this host asks nobody to do.
	ReasonSigner    Reason = "signer_unsupported"
	ReasonConfig    Reason = "config_refused"
	ReasonConfigure Reason = "configure_failed"
	ReasonProfile   Reason = "profile_invalid"
	ReasonHealth    Reason = "health_lost"
	ReasonCrashLoop Reason = "crash_loop"
	ReasonDescribe  Reason = "describe_failed"
	ReasonReattach  Reason = "reattach_failed"
)

// Failure is why an adapter is not ready. Nothing in it is raw text from outside.
type Failure struct {
	Reason Reason
	// Detail in one sentence, without a full stop.
	Detail string
	// Exit says how the process ended, such as "exit status 3"; empty when it did not or is not known.
	Exit string
	// Stderr holds the last lines, sanitized.
	Stderr []string
	At     time.Time
	// SHA256 and Digest of the executable as it was found; SHA256 is empty when it could not be read.
	SHA256 string
	Digest DigestState
	// Permanent: not tried again until reload or restart.
	Permanent bool
	// Diagnostics of a refused configuration.
	Diagnostics []Diagnostic
}

// Error gives the reason's word and the sentence.
func (f *Failure) Error() string { return joinParts(string(f.Reason), f.Sentence()) }

// Sentence gives detail and exit status, and what says most beside them: the first diagnostic that is an error, or the last
// line of stderr.
func (f *Failure) Sentence() string { return joinParts(f.Detail, f.Exit, f.evidence()) }

// of notes which executable failed.
func (f *Failure) of(digest string, state DigestState) *Failure {
	f.SHA256, f.Digest = digest, state
	return f
}

func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

func (f *Failure) evidence() string {
	for _, d := range f.Diagnostics {
		if !d.Warning {
			return d.Summary
		}
	}
	if n := len(f.Stderr); n > 0 {
		return f.Stderr[n-1]
	}
	return ""
}

// Diagnostic is a finding of an adapter about its configuration.
type Diagnostic struct {
	// Warning: it does not keep the configuration from being applied.
	Warning bool
	// Summary in one line, Detail says what to do.
	Summary, Detail string
	// Account and Attribute say where; empty: the provider block, the whole block.
	Account, Attribute string
}

// Errors of a Client.
var (
	// ErrAway says that the adapter is not ready and nothing cached serves.
	ErrAway = errors.New("adapter away")
	// ErrUnknown says that the host runs no such plugin, provider or account.
	ErrUnknown = errors.New("unknown")
	// ErrNotOffered says that the adapter does not have that service; a normal state.
	ErrNotOffered = errors.New("not offered by the adapter")
	// ErrFailed says that the adapter answered a call with an error.
	ErrFailed = errors.New("adapter reports failure")
	// ErrBadAnswer says that the adapter answered what the protocol does not allow.
	ErrBadAnswer = errors.New("bad answer of the adapter")
	// ErrSuperseded says that a start was given up because something else was asked for meanwhile.
	ErrSuperseded = errors.New("superseded")
	// ErrClosed says that the host was closed.
	ErrClosed = errors.New("plugin host closed")
)

// ReportedError is an [ErrFailed] with a sentence of the adapter for the user, made harmless.
type ReportedError struct{ Method, Reason string }

func (e *ReportedError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Method, ErrFailed, e.Reason)
}

// Is makes it an ErrFailed.
func (e *ReportedError) Is(target error) bool { return target == ErrFailed }

// RefusedError says that an account has no lease to give.
type RefusedError struct {
	Code providerv1.RefusalCode
	// Reason in one sentence with the remedy.
	Reason string
}

func (e *RefusedError) Error() string { return "lease refused: " + e.Reason }

// LateError says that a lease did not come in the time that a request may wait for it, from an adapter that is there: the
// account's credential is slow. The adapter goes on in the background.
type LateError struct{ Waited time.Duration }

func (e *LateError) Error() string { return fmt.Sprintf("no lease within %v", e.Waited) }
