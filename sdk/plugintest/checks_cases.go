package plugintest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func percent(used *float64) string {
	if used == nil {
		return "unknown"
	}
	return strconv.FormatFloat(*used, 'g', -1, 64) + " %"
}

func moment(t time.Time) string {
	if t.Unix() <= 0 {
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}

// evidence makes the request for Classify, with nothing in it that the profile does not expose. absent tells what the
// case needs and the daemon would not send.
func (s *suite) evidence(c OutcomeCase) (req *providerv1.ClassifyRequest, absent []string) {
	e := s.profile.GetExposure()
	req = &providerv1.ClassifyRequest{
		Account: s.fixtures.account(c.Account), Model: c.Model, Status: int32(c.Status), Committed: c.Committed,
		ObservedAt: timestamppb.New(s.fixtures.at(c.ObservedAt)), Route: providerv1.RouteKind_ROUTE_KIND_TURN,
		RequestFields: map[string]string{},
	}
	if kind, ok := enum(providerv1.RouteKind_value, "ROUTE_KIND_", c.Route); ok {
		req.Route = providerv1.RouteKind(kind)
	}
	req.RequestHeaders, absent = exposed(c.RequestHeaders, e.GetRequestHeaders(), absent)
	req.ResponseHeaders, absent = exposed(c.Headers, e.GetResponseHeaders(), absent)
	for name, value := range c.RequestFields {
		if !slices.Contains(e.GetRequestFields(), name) {
			absent = append(absent, "request field "+name)
			continue
		}
		req.RequestFields[name] = value
	}
	if c.Event == nil {
		body := text(c.Body)
		req.Evidence = &providerv1.ClassifyRequest_Body{Body: body[:min(len(body), int(e.GetErrorBodyBytes()))]}
		return req, absent
	}
	if !slices.Contains(s.profile.GetStream().GetInspected(), c.Event.Type) {
		absent = append(absent, "inspected event "+c.Event.Type)
	}
	req.Evidence = &providerv1.ClassifyRequest_Event{Event: &providerv1.Event{Type: c.Event.Type, Data: text(c.Event.Data)}}
	return req, absent
}

// exposed keeps the headers that the profile names.
func exposed(given map[string]string, names, absent []string) (kept []*providerv1.Header, stillAbsent []string) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.ContainsFunc(names, func(exposed string) bool { return matches(exposed, name) }) {
			kept = append(kept, &providerv1.Header{Name: name, Value: given[name]})
			continue
		}
		absent = append(absent, "header "+name)
	}
	return kept, absent
}

// observation makes the request for Observe.
func (s *suite) observation(c TelemetryCase) (req *providerv1.ObserveRequest, absent []string) {
	req = &providerv1.ObserveRequest{Account: s.fixtures.account(c.Account), Model: c.Model, Status: int32(c.Status),
		ObservedAt: timestamppb.New(s.fixtures.at(c.ObservedAt)), Completion: 1}
	req.ResponseHeaders, absent = exposed(c.Headers, s.profile.GetExposure().GetResponseHeaders(), nil)
	for _, event := range c.Events {
		if !slices.Contains(s.profile.GetStream().GetTelemetry(), event.Type) {
			absent = append(absent, "telemetry event "+event.Type)
		}
		req.Events = append(req.Events, &providerv1.Event{Type: event.Type, Data: text(event.Data)})
	}
	return req, absent
}

const fixExposure = "add it to the profile, or take it out of the case: the daemon shows an adapter only what the profile names"

func (s *suite) checkOutcomes(ctx context.Context, f *findings) {
	for _, c := range s.fixtures.Outcomes {
		req, absent := s.evidence(c)
		for _, what := range absent {
			f.add(fixExposure, "case %q needs the %s", c.Name, what)
		}
		got, err := s.classify(ctx, req)
		if err != nil {
			f.add("answer every response within a second; what is not known is unknown_error", "case %q: Classify: %v", c.Name, err)
			continue
		}
		checkVerdict("case "+strconv.Quote(c.Name), got, req, f)
		compareVerdict(c, got, f)
		again, err := s.classify(ctx, req)
		if err != nil || !proto.Equal(withoutTimes(got), withoutTimes(again)) {
			f.add("make the answer of the evidence alone", "case %q: two answers to the same evidence differ", c.Name)
		}
	}
}

func (s *suite) classify(ctx context.Context, req *providerv1.ClassifyRequest) (*providerv1.ClassifyResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, classifyTime)
	defer cancel()
	resp, err := s.provider.Classify(ctx, req)
	return resp, err
}

func (s *suite) observe(ctx context.Context, req *providerv1.ObserveRequest) (*providerv1.ObserveResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	resp, err := s.provider.Observe(ctx, req)
	return resp, err
}

// withoutTimes drops what an adapter may compute from the time of the call.
func withoutTimes(resp *providerv1.ClassifyResponse) *providerv1.ClassifyResponse {
	resp = proto.CloneOf(resp)
	resp.ClearsAt = nil
	for _, w := range resp.GetWindows() {
		w.ObservedAt, w.ResetsAt = nil, nil
	}
	return resp
}

// checkVerdict applies what holds for every classification.
func checkVerdict(where string, got *providerv1.ClassifyResponse, req *providerv1.ClassifyRequest, f *findings) {
	outcome := word("OUTCOME_", got.GetOutcome())
	if got.GetOutcome() == providerv1.Outcome_OUTCOME_UNSPECIFIED {
		f.add("set an outcome; what is not known is unknown_error", "%s: no outcome", where)
		return
	}
	if allowed := wire.Scopes(got.GetOutcome()); len(allowed) > 0 && !slices.Contains(allowed, got.GetScope()) {
		f.add("set the scope that the outcome has in the protocol", "%s: %s with the scope %s", where, outcome, word("SCOPE_", got.GetScope()))
	}
	if got.GetReason() == "" || len(got.GetReason()) > 64 || strings.Trim(got.GetReason(), "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		f.add("give a fixed code in snake_case, and no text from outside", "%s: reason %q is no code", where, got.GetReason())
	}
	observed := req.GetObservedAt().AsTime()
	if clears := got.GetClearsAt(); clears != nil && (clears.AsTime().Before(observed.Add(-time.Hour)) || clears.AsTime().After(observed.Add(367*24*time.Hour))) {
		f.add("leave a time out that makes no sense", "%s: clears at %s, observed at %s", where, moment(clears.AsTime()), moment(observed))
	}
	if got.GetRetryAfterMs() < 0 {
		f.add("leave a pause out that makes no sense", "%s: pause of %d ms", where, got.GetRetryAfterMs())
	}
	checkWindows(where, got.GetWindows(), observed, f)
}

func compareVerdict(c OutcomeCase, got *providerv1.ClassifyResponse, f *findings) {
	const fix = "correct the adapter, or the case"
	differ := func(what, got, want string) {
		if got != want {
			f.add(fix, "case %q: %s is %q instead of %q", c.Name, what, got, want)
		}
	}
	differ("outcome", word("OUTCOME_", got.GetOutcome()), c.Want.Outcome)
	differ("scope", word("SCOPE_", got.GetScope()), c.Want.Scope)
	optional := func(what, got, want string) {
		if want != "" {
			differ(what, got, want)
		}
	}
	optional("reason", got.GetReason(), c.Want.Reason)
	optional("model", got.GetModel(), c.Want.Model)
	optional("window", got.GetWindowId(), c.Want.WindowID)
	optional("pause", (time.Duration(got.GetRetryAfterMs()) * time.Millisecond).String(), c.Want.RetryAfter)
	if !c.Want.ClearsAt.IsZero() {
		differ("clearing time", moment(got.GetClearsAt().AsTime()), moment(c.Want.ClearsAt))
	}
	compareWindows("case "+strconv.Quote(c.Name), c.Want.Windows, got.GetWindows(), len(c.Want.Windows) > 0, f)
}

func (s *suite) checkTelemetry(ctx context.Context, f *findings) {
	metered := slices.ContainsFunc(s.profile.GetAccounts(), func(a *providerv1.AccountProfile) bool { return !a.GetUnmetered() })
	if metered && !slices.ContainsFunc(s.fixtures.Telemetry, func(c TelemetryCase) bool { return len(c.Want) > 0 }) {
		f.add(`add an accepted response with its windows under "telemetry", or declare the accounts unmetered`, "fixtures have no telemetry, and accounts have windows")
	}
	for _, c := range s.fixtures.Telemetry {
		req, absent := s.observation(c)
		for _, what := range absent {
			f.add(fixExposure, "case %q needs the %s", c.Name, what)
		}
		got, err := s.observe(ctx, req)
		if err != nil {
			f.add("answer within two seconds, without windows when there is nothing to say", "case %q: Observe: %v", c.Name, err)
			continue
		}
		where := "case " + strconv.Quote(c.Name)
		checkWindows(where, got.GetWindows(), req.GetObservedAt().AsTime(), f)
		compareWindows(where, c.Want, got.GetWindows(), true, f)
		s.checkDeclared(where, req.GetAccount(), got.GetWindows(), f)
	}
	if account := s.fixtures.leased(); account != "" {
		s.checkSilence(ctx, account, f)
	}
}

// checkSilence shows an answer without telemetry to Observe.
func (s *suite) checkSilence(ctx context.Context, account string, f *findings) {
	got, err := s.observe(ctx, &providerv1.ObserveRequest{Account: account, Status: 200,
		ObservedAt: timestamppb.New(s.fixtures.at(time.Time{}))})
	if err != nil {
		f.add("answer without windows", "Observe of an answer without telemetry: %v", err)
	}
	for _, w := range got.GetWindows() {
		if w.UsedPercent != nil {
			f.add("leave out what was not said: absent is neither 0 % nor 100 %", "an answer without telemetry shows the window %s at %s", w.GetWindowId(), percent(w.UsedPercent))
		}
	}
}

// checkDeclared finds windows of accounts that the profile calls unmetered.
func (s *suite) checkDeclared(where, account string, windows []*providerv1.Window, f *findings) {
	unmetered := slices.ContainsFunc(s.profile.GetAccounts(), func(a *providerv1.AccountProfile) bool {
		return a.GetAccount() == account && a.GetUnmetered()
	})
	if !unmetered {
		return
	}
	for _, w := range windows {
		f.add("do not declare an account unmetered that has windows", "%s: unmetered account %s shows the window %s", where, account, w.GetWindowId())
	}
}

// isPanic tells an error that nothing but a fault of the adapter makes.
func isPanic(err error) bool {
	return status.Code(err) == codes.Internal || status.Code(err) == codes.Unavailable
}
