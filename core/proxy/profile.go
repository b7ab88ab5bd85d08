package proxy

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of a profile. An adapter that declares more is refused.
const (
	maxRoutes     = 64
	maxExtractors = 16
	maxNames      = 128
	maxName       = 256
	maxErrorBody  = 64 << 10
)

// Profile is a provider's profile, checked and compiled for use on the path of requests. It does not change.
type Profile struct {
	provider string
	routes   []route
	// identity holds the rules that every request needs, streaming those that only an answer of our own needs.
	identity   rules
	streaming  rules
	placedWork map[string]bool
	exposure   exposure
	grammar    grammar
	headers    headerPolicy
	fallbacks  fallbacks
}

// CompileProfile checks what an adapter declared and compiles it. The error names the field.
func CompileProfile(provider string, p *providerv1.Profile) (*Profile, error) {
	compiled, err := compileProfile(provider, p)
	if err != nil {
		return nil, fmt.Errorf("compile profile of %s: %w", provider, err)
	}
	return compiled, nil
}

func compileProfile(provider string, p *providerv1.Profile) (*Profile, error) {
	if p == nil {
		return nil, errors.New("there is none")
	}
	out := &Profile{provider: provider}
	var err error
	if out.routes, err = compileRoutes(p.GetRoutes()); err != nil {
		return nil, err
	}
	if err = out.compileIdentity(p.GetIdentity()); err != nil {
		return nil, fmt.Errorf("identity.%w", err)
	}
	if out.headers, err = compileHeaderPolicy(p.GetHeaders()); err != nil {
		return nil, fmt.Errorf("headers.%w", err)
	}
	if out.exposure, err = compileExposure(p.GetExposure(), out.headers); err != nil {
		return nil, fmt.Errorf("exposure.%w", err)
	}
	if out.grammar, err = compileGrammar(p.GetStream()); err != nil {
		return nil, fmt.Errorf("stream.%w", err)
	}
	if out.fallbacks, err = compileFallbacks(p.GetFallbacks()); err != nil {
		return nil, fmt.Errorf("fallbacks.%w", err)
	}
	return out, nil
}

func (p *Profile) compileIdentity(identity *providerv1.Identity) error {
	var session, model, work, streaming, unread []extractor
	for _, list := range []struct {
		name     string
		declared []*providerv1.Extractor
		into     *[]extractor
	}{
		{"session", identity.GetSession(), &session}, {"model", identity.GetModel(), &model}, {"work", identity.GetWork(), &work},
		{"streaming", identity.GetStreaming(), &streaming},
		// Reserved: what they would find changes nothing yet.
		{"parent", identity.GetParent(), &unread}, {"subagent", identity.GetSubagent(), &unread},
	} {
		compiled, err := compileExtractors(list.declared)
		if err != nil {
			return fmt.Errorf("%s%w", list.name, err)
		}
		*list.into = compiled
	}
	if len(identity.GetPlacedWork()) > maxNames {
		return fmt.Errorf("placed_work: more than %d", maxNames)
	}
	p.placedWork = make(map[string]bool, len(identity.GetPlacedWork()))
	for _, kind := range identity.GetPlacedWork() {
		p.placedWork[kind] = true
	}
	if len(p.placedWork) == 0 {
		work = nil
	}
	p.identity = newRules(session, model, work)
	p.streaming = newRules(streaming)
	return nil
}

func compileExtractors(declared []*providerv1.Extractor) ([]extractor, error) {
	if len(declared) > maxExtractors {
		return nil, fmt.Errorf(": more than %d rules", maxExtractors)
	}
	compiled := make([]extractor, len(declared))
	for i, d := range declared {
		e, err := compileExtractor(d)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		compiled[i] = e
	}
	return compiled, nil
}

// headerPolicy names headers in their canonical form.
type headerPolicy struct {
	credentials  []string
	accountBound []string
	dropResponse []string
}

func compileHeaderPolicy(h *providerv1.HeaderPolicy) (policy headerPolicy, err error) {
	if policy.credentials, err = headerNames("credentials", h.GetCredentials()); err != nil {
		return policy, err
	}
	if policy.accountBound, err = headerNames("account_bound", h.GetAccountBound()); err != nil {
		return policy, err
	}
	policy.dropResponse, err = headerNames("drop_response", h.GetDropResponse())
	return policy, err
}

func headerNames(field string, names []string) ([]string, error) {
	if len(names) > maxNames {
		return nil, fmt.Errorf("%s: more than %d names", field, maxNames)
	}
	canonical := make([]string, len(names))
	for i, name := range names {
		if len(name) > maxName || !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("%s[%d]: not a header name", field, i)
		}
		canonical[i] = canonicalHeader(name)
	}
	return canonical, nil
}

// grammar says how streams are read.
type grammar struct {
	framing     providerv1.Framing
	typePointer pointer
	classes     map[string]eventClass
	// accepting is true when the profile lists the types that prove accepted work.
	accepting bool
	// terminating is true when it lists those that end a stream.
	terminating bool
}

// eventClass is what the grammar says of an event's type; a type may be of several classes.
type eventClass uint8

const (
	classPreamble eventClass = 1 << iota
	classInspected
	classTelemetry
	classTerminal
	classAccepted
)

func compileGrammar(g *providerv1.StreamGrammar) (grammar, error) {
	out := grammar{framing: g.GetFraming(), classes: map[string]eventClass{}}
	if p := g.GetTypePointer(); p != "" {
		var err error
		if out.typePointer, err = compilePointer(p); err != nil {
			return out, fmt.Errorf("type_pointer: %w", err)
		}
	}
	lists := []struct {
		name  string
		types []string
		class eventClass
	}{
		{"preamble", g.GetPreamble(), classPreamble}, {"inspected", g.GetInspected(), classInspected},
		{"telemetry", g.GetTelemetry(), classTelemetry}, {"terminal", g.GetTerminal(), classTerminal},
		{"accepted", g.GetAccepted(), classAccepted},
	}
	for _, list := range lists {
		if len(list.types) > maxNames {
			return out, fmt.Errorf("%s: more than %d types", list.name, maxNames)
		}
		for i, kind := range list.types {
			if kind == "" || len(kind) > maxEventType {
				return out, fmt.Errorf("%s[%d]: must have 1 to %d bytes", list.name, i, maxEventType)
			}
			out.classes[kind] |= list.class
		}
	}
	out.accepting = len(g.GetAccepted()) > 0
	out.terminating = len(g.GetTerminal()) > 0
	return out, nil
}

// class of an event type. Types that the grammar does not name are of none.
func (g *grammar) class(kind string) eventClass { return g.classes[kind] }

// provesWork reports whether an event of this class shows that the upstream accepted the work.
func (g *grammar) provesWork(class eventClass) bool {
	if g.accepting {
		return class&classAccepted != 0
	}
	return class&(classPreamble|classInspected) == 0
}

// names matches header names, exactly or by prefix.
type names struct {
	exact    map[string]bool
	prefixes []string
}

func compileNames(field string, list []string, forbidden []string) (names, error) {
	out := names{exact: map[string]bool{}}
	if len(list) > maxNames {
		return out, fmt.Errorf("%s: more than %d names", field, maxNames)
	}
	for i, name := range list {
		stem, isPrefix := strings.CutSuffix(name, "*")
		if len(name) > maxName || !httpguts.ValidHeaderFieldName(stem) {
			return out, fmt.Errorf("%s[%d]: not a header name", field, i)
		}
		stem = canonicalHeader(stem)
		if isPrefix {
			out.prefixes = append(out.prefixes, stem)
		} else {
			out.exact[stem] = true
		}
	}
	for _, name := range forbidden {
		if out.match(name) {
			return out, fmt.Errorf("%s: %s is a credential", field, strings.ToLower(name))
		}
	}
	return out, nil
}

// match takes a canonical name.
func (n *names) match(name string) bool {
	if n.exact[name] {
		return true
	}
	for _, prefix := range n.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// exposure lists all of the traffic that an adapter gets to see.
type exposure struct {
	requestHeaders  names
	requestFields   []string
	fieldPointers   []pointer
	responseHeaders names
	errorBody       int
}

func compileExposure(e *providerv1.Exposure, policy headerPolicy) (out exposure, err error) {
	secret := append(append([]string{}, credentialHeaders...), policy.credentials...)
	if out.requestHeaders, err = compileNames("request_headers", e.GetRequestHeaders(), secret); err != nil {
		return out, err
	}
	if out.responseHeaders, err = compileNames("response_headers", e.GetResponseHeaders(), []string{"Set-Cookie"}); err != nil {
		return out, err
	}
	if _, err = compileNames("urgent_headers", e.GetUrgentHeaders(), nil); err != nil {
		return out, err
	}
	if len(e.GetRequestFields()) > maxPointers {
		return out, fmt.Errorf("request_fields: more than %d", maxPointers)
	}
	for i, field := range e.GetRequestFields() {
		p, err := compilePointer(field)
		if err != nil {
			return out, fmt.Errorf("request_fields[%d]: %w", i, err)
		}
		out.requestFields = append(out.requestFields, field)
		out.fieldPointers = append(out.fieldPointers, p)
	}
	if e.GetErrorBodyBytes() < 0 {
		return out, errors.New("error_body_bytes: is negative")
	}
	out.errorBody = min(int(e.GetErrorBodyBytes()), maxErrorBody)
	return out, nil
}
