package plugintest

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func (s *suite) checkProfile(ctx context.Context, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	resp, err := s.provider.Profile(ctx, &providerv1.ProfileRequest{})
	if err != nil {
		f.add("answer Profile after every Configure", "Profile: %v", err)
		return
	}
	again, err := s.provider.Profile(ctx, &providerv1.ProfileRequest{})
	if err != nil || !proto.Equal(resp, again) {
		f.add("make the profile of the configuration alone", "two profiles of one configuration differ")
	}
	s.profile = resp.GetProfile()
	checkRoutes(s.profile.GetRoutes(), f)
	checkIdentity(s.profile.GetIdentity(), f)
	checkExposure(s.profile, f)
	checkGrammar(s.profile.GetStream(), f)
	checkFallbacks(s.profile.GetFallbacks(), f)
	s.checkDeclaredWindows(f)
}

func checkRoutes(routes []*providerv1.Route, f *findings) {
	turns := 0
	for _, r := range routes {
		name := r.GetMethod() + " " + r.GetPath()
		if r.GetMethod() != strings.ToUpper(r.GetMethod()) || r.GetMethod() == "" || !strings.HasPrefix(r.GetPath(), "/") {
			f.add("write the method in capitals and begin the path with /", "route %q has no usable method and path", name)
		}
		switch r.GetKind() {
		case providerv1.RouteKind_ROUTE_KIND_UNSPECIFIED:
			f.add("give every route a kind", "route %q has no kind", name)
		case providerv1.RouteKind_ROUTE_KIND_TURN:
			turns++
		case providerv1.RouteKind_ROUTE_KIND_LOCAL:
			if r.GetLocal().GetStatus() == 0 {
				f.add("give the fixed answer", "local route %q has no answer", name)
			}
		}
	}
	if turns == 0 {
		f.add("declare the requests that are a session's work as turns", "profile has no route of the kind turn")
	}
}

func checkIdentity(identity *providerv1.Identity, f *findings) {
	lists := [][]*providerv1.Extractor{identity.GetSession(), identity.GetParent(), identity.GetSubagent(), identity.GetWork(),
		identity.GetModel(), identity.GetStreaming()}
	for _, e := range slices.Concat(lists...) {
		if e.GetHeader() == "" && !strings.HasPrefix(e.GetBodyPointer(), "/") {
			f.add("name a header, or point into the body with /field", "a rule of identity has no source")
		}
		if e.GetPattern() == "" {
			continue
		}
		if pattern, err := regexp.Compile(e.GetPattern()); err != nil || pattern.NumSubexp() != 1 {
			f.add("use RE2 with exactly one group, which is the value", "pattern %q cannot pick a value", e.GetPattern())
		}
	}
}

// credentialHeaders are credentials whatever a profile says.
func credentialHeaders() []string {
	return []string{"authorization", "proxy-authorization", "x-api-key", "cookie", "set-cookie"}
}

func checkExposure(p *providerv1.Profile, f *findings) {
	e := p.GetExposure()
	if e.GetErrorBodyBytes() < 0 || e.GetErrorBodyBytes() > 64<<10 {
		f.add("ask for at most 64 KiB; the daemon gives no more", "profile asks for %d bytes of error bodies", e.GetErrorBodyBytes())
	}
	secret := append(credentialHeaders(), p.GetHeaders().GetCredentials()...)
	for _, exposed := range slices.Concat(e.GetRequestHeaders(), e.GetResponseHeaders()) {
		for _, name := range secret {
			if matches(exposed, name) {
				f.add("expose what tells about quota and errors, by its full name", "profile exposes %q, which takes in the credential header %s", exposed, name)
			}
		}
	}
	for _, urgent := range e.GetUrgentHeaders() {
		if !slices.ContainsFunc(e.GetResponseHeaders(), func(exposed string) bool { return matches(exposed, urgent) }) {
			f.add("expose it as a response header too", "urgent header %q is not exposed", urgent)
		}
	}
}

// matches reports whether an exposed name, possibly a prefix with *, takes in a header.
func matches(exposed, name string) bool {
	if prefix, isPrefix := strings.CutSuffix(exposed, "*"); isPrefix {
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	return strings.EqualFold(exposed, strings.TrimSuffix(name, "*"))
}

func checkGrammar(g *providerv1.StreamGrammar, f *findings) {
	types := slices.Concat(g.GetPreamble(), g.GetInspected(), g.GetTelemetry(), g.GetTerminal(), g.GetAccepted())
	switch g.GetFraming() {
	case providerv1.Framing_FRAMING_UNSPECIFIED:
		f.add("say none when answers are not streamed", "stream grammar has no framing")
	case providerv1.Framing_FRAMING_JSON_LINES:
		if g.GetTypePointer() == "" {
			f.add("point to the type in an event's data", "stream grammar of JSON lines has no type_pointer")
		}
	case providerv1.Framing_FRAMING_NONE:
		if len(types) > 0 {
			f.add("set the framing of the stream", "stream grammar names event types and no framing")
		}
	}
	for _, t := range g.GetInspected() {
		if slices.Contains(g.GetPreamble(), t) || slices.Contains(g.GetAccepted(), t) {
			f.add("let an event type be one of preamble, inspected and accepted", "event type %q is inspected and something else", t)
		}
	}
}

func checkFallbacks(a *providerv1.FallbackAnswers, f *findings) {
	for name, answer := range map[string]*providerv1.Answer{"wrong_key": a.GetWrongKey(), "unknown_path": a.GetUnknownPath(),
		"unavailable_until": a.GetUnavailableUntil(), "unavailable": a.GetUnavailable(), "adapter_away": a.GetAdapterAway()} {
		if answer.GetStatus() < http.StatusBadRequest || answer.GetStatus() > 599 {
			f.add("give it in the client's own shape, with a status of 400 or more", "fallback %s has the status %d", name, answer.GetStatus())
		}
		if len(answer.GetBody()) == 0 {
			f.add("give it in the client's own shape; {{sentence}} is replaced by the reason", "fallback %s has no body", name)
		}
	}
}

func (s *suite) checkDeclaredWindows(f *findings) {
	configured := map[string]bool{}
	for _, a := range s.config.GetAccounts() {
		configured[a.GetName()] = true
	}
	for _, a := range s.profile.GetAccounts() {
		if !configured[a.GetAccount()] {
			f.add("list the configured accounts", "profile lists the account %q, which is not configured", a.GetAccount())
		}
		delete(configured, a.GetAccount())
		if len(a.GetWindows()) == 0 && !a.GetUnmetered() {
			f.add("declare the account's windows, or say that it is unmetered", "account %s has neither windows nor unmetered", a.GetAccount())
		}
		seen := map[string]bool{}
		for _, w := range a.GetWindows() {
			if w.GetWindowId() == "" || seen[w.GetWindowId()] || w.GetKind() == providerv1.WindowKind_WINDOW_KIND_UNSPECIFIED || w.GetLengthSeconds() < 0 {
				f.add("give every window an id of its own, a kind and a length (0: unknown)", "window %q of account %s is declared incompletely or twice", w.GetWindowId(), a.GetAccount())
			}
			seen[w.GetWindowId()] = true
		}
	}
	for name := range configured {
		f.add("list every configured account, enabled or not", "profile does not list the account %q", name)
	}
}

func (s *suite) checkSessions(_ context.Context, f *findings) {
	rules := s.profile.GetIdentity().GetSession()
	// What every client sends tells nothing of a session.
	anonymous := request{header: http.Header{"User-Agent": {"client/1.0"}, "Accept": {"*/*"}, "Content-Type": {"application/json"},
		"Content-Length": {"2"}, "Accept-Encoding": {"gzip"}, "Authorization": {"Bearer key"}, "X-Api-Key": {"key"},
		"X-Noria-Key": {"key"}, "Connection": {"keep-alive"}}, body: []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}],"max_tokens":1}`)}
	const fix = "take the session only from what the client itself sends as its identity"
	if found := extract(rules, anonymous); found != "" {
		f.add(fix, "a request without any identity gets the session %q", found)
	}
	with, without := false, false
	for _, c := range s.fixtures.Sessions {
		header := http.Header{}
		for name, value := range c.Headers {
			header.Set(name, value)
		}
		if found := extract(rules, request{header: header, body: text(c.Body)}); found != c.Want {
			f.add(fix, "case %q: session %q instead of %q", c.Name, found, c.Want)
		}
		with, without = with || c.Want != "", without || c.Want == ""
	}
	if len(rules) > 0 && (!with || !without) {
		f.add(`add both under "sessions"`, "fixtures need a request with a session and one without")
	}
}
