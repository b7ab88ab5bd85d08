package plugin

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// Bounds of other answers.
const (
	maxSentence    = 256
	maxRetryAfter  = 15 * time.Minute
	maxClears      = 366 * 24 * time.Hour
	leaseCap       = 5 * time.Minute
	maxLeaseParts  = 32
	maxHeaderValue = 16 << 10
	maxBaseURL     = 1 << 10
	maxGeneration  = 128
	maxBody        = 64 << 10
	maxArgv        = 64
	maxArgument    = 8 << 10
	maxCatalog     = 256
	maxEfforts     = 16
	maxServices    = 32
)

// answerCheck turns answers of an adapter into values that the host can keep, show and act on.
type answerCheck struct {
	redactor *events.Redactor
}

// text makes a short text from outside harmless; one that looks like a credential is replaced as a whole.
func (c *answerCheck) text(s string, limit int) string {
	if c.redactor.Text(s) != s {
		return events.Redacted
	}
	return printable.Line(s, limit)
}

// sentence makes one line for people.
func (c *answerCheck) sentence(s string) string {
	return printable.Line(c.redactor.Text(s), maxSentence)
}

func badAnswer(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadAnswer, fmt.Sprintf(format, args...))
}

// verdict reads an answer of Classify. What does not fit together is UNKNOWN_ERROR: the host never makes a stronger
// reading than the adapter's.
func (c *answerCheck) verdict(answer *providerv1.ClassifyResponse, asked *providerv1.ClassifyRequest, sentAt, now time.Time) Verdict {
	v := Verdict{Outcome: answer.GetOutcome(), Scope: answer.GetScope(), Reason: reasonCode(answer.GetReason())}
	fits, known := fittingScope(v.Outcome, v.Scope)
	accepted := v.Outcome == providerv1.Outcome_OUTCOME_ACCEPTED
	model := c.text(answer.GetModel(), maxModelBytes)
	if model == "" {
		model = asked.GetModel()
	}
	switch {
	case !known, accepted && asked.GetEvent() == nil, fits == providerv1.Scope_SCOPE_MODEL && model == "":
		return Verdict{Outcome: providerv1.Outcome_OUTCOME_UNKNOWN_ERROR, Scope: providerv1.Scope_SCOPE_REQUEST, Reason: v.Reason}
	}
	v.Scope = fits
	cause, rejects := rejectionCause(v.Outcome, v.Scope)
	if !rejects {
		return v
	}
	v.Rejection = quota.Rejection{
		Cause:   cause,
		Reason:  v.Reason,
		Windows: c.readings(answer.GetWindows(), quota.SourceRejection, sentAt),
	}
	if v.Scope == providerv1.Scope_SCOPE_MODEL {
		v.Rejection.Model = model
	}
	if id := answer.GetWindowId(); printable.IsLine(id, maxIDBytes) {
		v.Rejection.WindowID = c.text(id, maxIDBytes)
	}
	if clears, given := timeOf(answer.GetClearsAt()); given && clears.After(now) && clears.Sub(now) <= maxClears {
		v.Rejection.ClearsAt = clears
	}
	if cause == quota.CauseThrottle && answer.GetRetryAfterMs() > 0 {
		v.Rejection.RetryAfter = min(milliseconds(answer.GetRetryAfterMs()), maxRetryAfter)
	}
	return v
}

// fittingScope returns the scope to act on; ok is false when outcome and scope are unknown or contradict each other.
func fittingScope(o providerv1.Outcome, s providerv1.Scope) (fits providerv1.Scope, ok bool) {
	possible := wire.Scopes(o)
	for _, p := range possible {
		if p == s {
			return s, true
		}
	}
	if len(possible) == 1 {
		return possible[0], s == providerv1.Scope_SCOPE_UNSPECIFIED || possible[0] != providerv1.Scope_SCOPE_ACCOUNT
	}
	return s, false
}

func rejectionCause(o providerv1.Outcome, s providerv1.Scope) (quota.Cause, bool) {
	switch o {
	case providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED:
		return quota.CauseQuota, true
	case providerv1.Outcome_OUTCOME_AUTH_FAILED:
		return quota.CauseAuth, true
	case providerv1.Outcome_OUTCOME_NOT_ENTITLED:
		return quota.CauseNotEntitled, true
	case providerv1.Outcome_OUTCOME_THROTTLED:
		return quota.CauseThrottle, s == providerv1.Scope_SCOPE_ACCOUNT
	}
	return "", false
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, int64(maxClears/time.Millisecond))) * time.Millisecond
}

// reasonCode keeps a code of the protocol's form.
func reasonCode(s string) string {
	if reasonPattern.MatchString(s) {
		return s
	}
	return "unspecified"
}

// lease reads an answer of Lease. No part of it gets into an error.
func (c *answerCheck) lease(answer *providerv1.LeaseResponse, now time.Time) (wire.Lease, error) {
	if refusal := answer.GetRefusal(); refusal != nil {
		return wire.Lease{}, c.refusal(refusal)
	}
	given := answer.GetLease()
	if given == nil {
		return wire.Lease{}, badAnswer("neither lease nor refusal")
	}
	if !isUpstream(given.GetBaseUrl()) {
		return wire.Lease{}, badAnswer("base URL is neither https nor http on loopback")
	}
	if !printable.IsLine(given.GetGeneration(), maxGeneration) {
		return wire.Lease{}, badAnswer("generation of the lease")
	}
	lease := wire.Lease{BaseURL: given.GetBaseUrl(), Generation: given.GetGeneration(), ValidUntil: now.Add(leaseCap)}
	if until, ok := timeOf(given.GetValidUntil()); ok {
		if !until.After(now) {
			return wire.Lease{}, badAnswer("lease is over already")
		}
		if until.Before(lease.ValidUntil) {
			lease.ValidUntil = until
		}
	}
	var err error
	if lease.Set, err = leaseHeaders(given.GetSet()); err != nil {
		return wire.Lease{}, err
	}
	if lease.Extend, err = leaseHeaders(given.GetExtend()); err != nil {
		return wire.Lease{}, err
	}
	if len(given.GetRemove()) > maxLeaseParts {
		return wire.Lease{}, badAnswer("too many headers in a lease")
	}
	for _, name := range given.GetRemove() {
		if !maySet(name) {
			return wire.Lease{}, badAnswer("header name in a lease")
		}
		lease.Remove = append(lease.Remove, name)
	}
	return lease, nil
}

func (c *answerCheck) refusal(r *providerv1.Refusal) error {
	code := r.GetCode()
	switch code {
	case providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, providerv1.RefusalCode_REFUSAL_CODE_EXPIRED,
		providerv1.RefusalCode_REFUSAL_CODE_NOT_ELIGIBLE, providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY:
	default:
		// Nothing is held against an account for a word that is not known.
		code = providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY
	}
	reason := c.sentence(r.GetReason())
	if reason == "" {
		reason = "the adapter gave no reason"
	}
	return &RefusedError{Code: code, Reason: reason}
}

func leaseHeaders(given []*providerv1.Header) ([]wire.Header, error) {
	if len(given) > maxLeaseParts {
		return nil, badAnswer("too many headers in a lease")
	}
	var headers []wire.Header
	for _, h := range given {
		if !maySet(h.GetName()) {
			return nil, badAnswer("header name in a lease")
		}
		if len(h.GetValue()) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(h.GetValue()) {
			return nil, badAnswer("header value in a lease")
		}
		headers = append(headers, wire.Header{Name: h.GetName(), Value: h.GetValue()})
	}
	return headers, nil
}

// maySet refuses what is no header name and what frames a message: that is the host's business.
func maySet(name string) bool {
	if len(name) > maxIDBytes || !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"content-encoding", "accept-encoding", "expect", "proxy-authorization", "proxy-connection":
		return false
	}
	return true
}

// isUpstream reports whether a credential may go there.
func isUpstream(text string) bool {
	_, err := wire.ParseUpstream(text)
	return err == nil && printable.IsLine(text, maxBaseURL)
}

// answer reads an HTTP answer in the client's own shape.
func (c *answerCheck) answer(a *providerv1.Answer) (*providerv1.Answer, error) {
	if a.GetStatus() < 200 || a.GetStatus() > 599 || len(a.GetBody()) > maxBody || len(a.GetHeaders()) > maxLeaseParts {
		return nil, badAnswer("answer in the client's shape")
	}
	for _, h := range a.GetHeaders() {
		if !maySet(h.GetName()) || len(h.GetValue()) > maxHeaderValue || !httpguts.ValidHeaderFieldValue(h.GetValue()) {
			return nil, badAnswer("header of an answer in the client's shape")
		}
	}
	return a, nil
}

// command reads a command line for the user's terminal. Placeholders are text like any other here.
func (c *answerCheck) command(given *providerv1.OfficialCommand) (Command, error) {
	bad := badAnswer("command")
	if len(given.GetArgv()) == 0 || len(given.GetArgv()) > maxArgv || len(given.GetEnvironment()) > maxArgv || len(given.GetUnset()) > maxArgv {
		return Command{}, bad
	}
	for _, argument := range given.GetArgv() {
		if len(argument) > maxArgument || strings.ContainsRune(argument, 0) {
			return Command{}, bad
		}
	}
	if given.GetArgv()[0] == "" {
		return Command{}, bad
	}
	for name, value := range given.GetEnvironment() {
		if !envPattern.MatchString(name) || len(value) > maxArgument || strings.ContainsRune(value, 0) {
			return Command{}, bad
		}
	}
	for _, name := range given.GetUnset() {
		if !envPattern.MatchString(name) {
			return Command{}, bad
		}
	}
	return Command{Argv: given.GetArgv(), Environment: given.GetEnvironment(), Unset: given.GetUnset()}, nil
}

// authState maps what is not known to unspecified: nothing is claimed.
func authState(s providerv1.AuthState) providerv1.AuthState {
	switch s {
	case providerv1.AuthState_AUTH_STATE_SIGNED_IN, providerv1.AuthState_AUTH_STATE_SIGNED_OUT, providerv1.AuthState_AUTH_STATE_EXPIRED:
		return s
	}
	return providerv1.AuthState_AUTH_STATE_UNSPECIFIED
}

func (c *answerCheck) models(given *providerv1.ListModelsResponse, now time.Time) ModelCatalog {
	out := ModelCatalog{
		ClientVersion: c.text(given.GetClientVersion(), maxIDBytes),
		Source:        c.text(given.GetSource(), maxIDBytes),
		ReadAt:        observedAt(given.GetReadAt(), now),
	}
	for _, m := range given.GetModels()[:min(len(given.GetModels()), maxCatalog)] {
		if m.GetId() == "" || !printable.IsLine(m.GetId(), maxModelBytes) {
			continue
		}
		model := Model{
			ID:            c.text(m.GetId(), maxModelBytes),
			DisplayName:   c.text(m.GetDisplayName(), maxModelBytes),
			DefaultEffort: c.text(m.GetDefaultEffort(), maxIDBytes),
			Default:       m.GetIsDefault(),
			Hidden:        m.GetHidden(),
			Upgrade:       c.text(m.GetUpgrade(), maxModelBytes),
		}
		for _, effort := range m.GetEfforts()[:min(len(m.GetEfforts()), maxEfforts)] {
			model.Efforts = append(model.Efforts, c.text(effort, maxIDBytes))
		}
		out.Models = append(out.Models, model)
	}
	return out
}

func (c *answerCheck) diagnostics(given []*pluginv1.Diagnostic) []Diagnostic {
	var out []Diagnostic
	for _, d := range given[:min(len(given), maxArgv)] {
		out = append(out, Diagnostic{
			Warning:   d.GetSeverity() == pluginv1.Severity_SEVERITY_WARNING,
			Summary:   c.sentence(d.GetSummary()),
			Detail:    c.sentence(d.GetDetail()),
			Account:   c.text(d.GetAccount(), maxIDBytes),
			Attribute: c.text(d.GetAttribute(), maxIDBytes),
		})
	}
	return out
}
