package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// fakeState keeps bindings, blockers and work in flight in maps. It places on the bound account, else where the session
// has work in flight or lives, else on the first account that is free.
type fakeState struct {
	accounts []quota.AccountID

	mu        sync.Mutex // guards all below
	bindings  map[string]quota.AccountID
	latest    map[string]quota.AccountID
	disabled  map[quota.AccountID]bool
	blockers  map[quota.AccountID][]quota.Rejection
	cooldowns map[quota.AccountID]quota.Rejection
	open      map[uint64]*fakeAttempt
	journal   []string
	sequence  uint64
	writes    int
	// ended counts attempts by how they ended.
	ended map[string]int

	// durable, if set, is what Durable waits for.
	durable func(ctx context.Context, sequence uint64) error
	pingErr error
}

type fakeAttempt struct {
	req      placement.Request
	decision placement.Decision
	accepted bool
}

func newFakeState(accounts ...quota.AccountID) *fakeState {
	return &fakeState{
		accounts: accounts, bindings: map[string]quota.AccountID{}, latest: map[string]quota.AccountID{},
		blockers: map[quota.AccountID][]quota.Rejection{}, cooldowns: map[quota.AccountID]quota.Rejection{},
		open: map[uint64]*fakeAttempt{}, ended: map[string]int{},
	}
}

func bindingKey(session, model string) string { return session + "\x00" + model }

func (s *fakeState) Place(req placement.Request) (placement.Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.decide(req)
	d.At = req.At
	if d.Placed {
		s.open[req.Attempt] = &fakeAttempt{req: req, decision: d}
	}
	return d, nil
}

func (s *fakeState) decide(req placement.Request) placement.Decision {
	usable := func(a quota.AccountID) bool {
		if a.Provider != req.Provider || s.disabled[a] {
			return false
		}
		for _, tried := range req.Tried {
			if tried == a {
				return false
			}
		}
		for _, b := range s.blockers[a] {
			if b.Model == "" || b.Model == req.Model {
				return false
			}
		}
		return true
	}
	if bound, ok := s.bindings[bindingKey(req.Session, req.Model)]; ok && req.Session != "" && usable(bound) {
		return placement.Decision{Placed: true, Account: bound, How: placement.HowBound, Bound: true}
	}
	if req.Session != "" && !req.Detour {
		for _, other := range s.open {
			if other.req.Session == req.Session && other.req.Binds && usable(other.decision.Account) {
				return placement.Decision{Placed: true, Account: other.decision.Account, How: placement.HowFollow}
			}
		}
		if latest, ok := s.latest[req.Session]; ok && usable(latest) {
			return placement.Decision{Placed: true, Account: latest, How: placement.HowSibling}
		}
	}
	causes := map[string]int{}
	var clears time.Time
	for _, a := range s.accounts {
		pause, cooling := s.cooldowns[a]
		switch {
		case s.disabled[a]:
			causes[placement.FilteredDisabled]++
		case usable(a) && !cooling:
			return placement.Decision{Placed: true, Account: a, How: placement.HowKnown}
		case len(s.blockers[a]) > 0:
			b := s.blockers[a][0]
			causes[string(b.Cause)]++
			if clears.IsZero() || !b.ClearsAt.IsZero() && b.ClearsAt.Before(clears) {
				clears = b.ClearsAt
			}
		case cooling:
			causes[string(pause.Cause)]++
		case a.Provider == req.Provider:
			causes["tried"]++
		}
	}
	kind := placement.ForecastUnknown
	if !clears.IsZero() {
		kind = placement.ForecastExact
	}
	return placement.Decision{Forecast: placement.Forecast{Kind: kind, At: clears, Window: "five_hour", Causes: causes}}
}

func (s *fakeState) Accept(attempt uint64, _ time.Time) (done placement.Acceptance, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.open[attempt]
	if !ok {
		return done, fmt.Errorf("accept attempt %d: unknown", attempt)
	}
	a.accepted = true
	key := bindingKey(a.req.Session, a.req.Model)
	now, has := s.bindings[key]
	done.Home = now
	if !a.req.Binds || a.req.Detour || has && now == a.decision.Account || has && !a.decision.Bound && a.decision.How != placement.HowKnown {
		return done, nil
	}
	s.bindings[key] = a.decision.Account
	s.latest[a.req.Session] = a.decision.Account
	sequence := s.write("bind " + a.req.Session + " " + a.decision.Account.String())
	return placement.Acceptance{Sequence: sequence, Home: a.decision.Account, Bound: true, From: now}, nil
}

// write is called with mu held.
func (s *fakeState) write(entry string) uint64 {
	s.writes++
	s.sequence++
	s.journal = append(s.journal, entry)
	return s.sequence
}

func (s *fakeState) End(attempt uint64, _ time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how := "aborted"
	if a, ok := s.open[attempt]; !ok {
		how = "unknown"
	} else if a.accepted {
		how = "completed"
	}
	delete(s.open, attempt)
	s.ended[how]++
}

func (s *fakeState) Reject(attempt uint64, r quota.Rejection, _ time.Time) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.open[attempt]
	if !ok {
		return 0, fmt.Errorf("reject attempt %d: unknown", attempt)
	}
	if !a.accepted {
		delete(s.open, attempt)
		s.ended["rejected"]++
	}
	account := a.decision.Account
	switch r.Cause {
	case quota.CauseThrottle, quota.CauseNetwork, quota.CauseCredential:
		s.cooldowns[account] = r
		return 0, nil
	}
	s.blockers[account] = append(s.blockers[account], r)
	return s.write("block " + account.String() + " " + string(r.Cause)), nil
}

func (s *fakeState) SessionAccount(session string) (quota.AccountID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.latest[session]
	return a, ok
}

func (s *fakeState) Enabled(account quota.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.disabled[account]
}

func (s *fakeState) Durable(ctx context.Context, sequence uint64) error {
	if s.durable != nil {
		return s.durable(ctx, sequence)
	}
	return nil
}

func (s *fakeState) Ping(context.Context) error { return s.pingErr }

// bind gives a session a binding.
func (s *fakeState) bind(session, model string, a quota.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bindings[bindingKey(session, model)] = a
	s.latest[session] = a
}

// bound is the account of a session and model.
func (s *fakeState) bound(session, model string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bindings[bindingKey(session, model)].Name
}

func (s *fakeState) blocked(a quota.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.blockers[a]) > 0
}

func (s *fakeState) cooled(a quota.AccountID) (quota.Rejection, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.cooldowns[a]
	return r, ok
}

func (s *fakeState) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// fakeAdapters gives leases without any call and judges by a few words. It counts what would be calls to a process.
type fakeAdapters struct {
	profiles map[string]*Profile
	bases    map[quota.AccountID]string
	calls    atomic.Int64

	mu       sync.Mutex // guards all below
	leases   map[quota.AccountID]*wire.Lease
	refused  map[quota.AccountID]error
	refresh  func(account quota.AccountID, refused wire.Lease) (wire.Lease, error)
	classify func(ctx context.Context, evidence *providerv1.ClassifyRequest) (Verdict, error)
	shape    func(req *providerv1.UnavailableRequest) (*providerv1.Answer, error)
	judged   []*providerv1.ClassifyRequest
	sentAt   time.Time // of the last that was judged
	observed []*providerv1.ObserveRequest
	asked    []*providerv1.UnavailableRequest
	// renewals of leases, and how often each account's was asked for.
	renewals int
	wanted   map[quota.AccountID]int
}

func newFakeAdapters() *fakeAdapters {
	return &fakeAdapters{
		profiles: map[string]*Profile{}, bases: map[quota.AccountID]string{},
		leases: map[quota.AccountID]*wire.Lease{}, refused: map[quota.AccountID]error{}, wanted: map[quota.AccountID]int{},
	}
}

func (f *fakeAdapters) Profile(provider string) (*Profile, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.profiles[provider]
	return p, ok
}

// tokenLease is the lease of an account whose credential is token.
func tokenLease(base, token, generation string) wire.Lease {
	return wire.Lease{BaseURL: base, Set: []wire.Header{{Name: "authorization", Value: "Bearer " + token}}, Generation: generation}
}

func (f *fakeAdapters) Lease(_ context.Context, a quota.AccountID) (wire.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[a]++
	if err := f.refused[a]; err != nil {
		return wire.Lease{}, err
	}
	if l := f.leases[a]; l != nil {
		return *l, nil
	}
	return tokenLease(f.bases[a], a.Name, "1"), nil
}

func (f *fakeAdapters) RefreshLease(_ context.Context, a quota.AccountID, refused wire.Lease) (wire.Lease, error) {
	f.calls.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewals++
	if f.refresh == nil {
		return wire.Lease{}, &LeaseRefusedError{Code: providerv1.RefusalCode_REFUSAL_CODE_EXPIRED, Reason: "sign in again"}
	}
	l, err := f.refresh(a, refused)
	if err == nil {
		f.leases[a] = &l
	}
	return l, err
}

func (f *fakeAdapters) Classify(ctx context.Context, a quota.AccountID, e *providerv1.ClassifyRequest, sentAt time.Time) (Verdict, error) {
	f.calls.Add(1)
	f.mu.Lock()
	f.judged = append(f.judged, e)
	f.sentAt = sentAt
	classify := f.classify
	f.mu.Unlock()
	if classify != nil {
		return classify(ctx, e)
	}
	return judge(e), nil
}

func (f *fakeAdapters) Observe(_ quota.AccountID, o *providerv1.ObserveRequest, _ time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed = append(f.observed, o)
}

func (f *fakeAdapters) Unavailable(_ context.Context, _ string, req *providerv1.UnavailableRequest) (*providerv1.Answer, error) {
	f.calls.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, req)
	if f.shape == nil {
		return nil, ErrAdapterAway
	}
	return f.shape(req)
}

// evidence that was judged so far.
func (f *fakeAdapters) evidence() []*providerv1.ClassifyRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*providerv1.ClassifyRequest(nil), f.judged...)
}

func (f *fakeAdapters) observations() []*providerv1.ObserveRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*providerv1.ObserveRequest(nil), f.observed...)
}

// judge reads evidence as the bundled adapters do, in few words.
func judge(e *providerv1.ClassifyRequest) Verdict {
	text := e.GetBody()
	if e.GetEvent() != nil {
		text = e.GetEvent().GetData()
	}
	has := func(word string) bool { return bytes.Contains(text, []byte(word)) }
	header := func(name string) string {
		for _, h := range e.GetResponseHeaders() {
			if strings.EqualFold(h.GetName(), name) {
				return h.GetValue()
			}
		}
		return ""
	}
	account := func(o providerv1.Outcome, cause quota.Cause, reason string) Verdict {
		return Verdict{Outcome: o, Reason: reason, Rejection: quota.Rejection{Cause: cause, Reason: reason}}
	}
	other := func(o providerv1.Outcome) Verdict { return Verdict{Outcome: o} }
	status := int(e.GetStatus())
	switch {
	case has("overloaded"), status >= 500, header("Cf-Mitigated") != "":
		return other(providerv1.Outcome_OUTCOME_OVERLOADED)
	case header("Anthropic-Ratelimit-Unified-Status") == "rejected", has("usage_limit_reached"), has("usage limit"),
		status == 200 && has("rate_limit_error"):
		v := account(providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, quota.CauseQuota, "usage_limit_reached")
		if reset, err := strconv.ParseInt(header("Anthropic-Ratelimit-Unified-Reset"), 10, 64); err == nil {
			v.Rejection.ClearsAt = time.Unix(reset, 0)
		}
		return v
	case status == 429 && header("Retry-After") == "":
		return other(providerv1.Outcome_OUTCOME_THROTTLED)
	case status == 429, has("rate_limit_exceeded"):
		v := account(providerv1.Outcome_OUTCOME_THROTTLED, quota.CauseThrottle, "rate_limited")
		if seconds, err := strconv.ParseFloat(header("Retry-After"), 64); err == nil && seconds > 0 && seconds < 900 {
			v.Rejection.RetryAfter = time.Duration(seconds * float64(time.Second))
		}
		return v
	case status == 401, has("revoked"):
		return account(providerv1.Outcome_OUTCOME_AUTH_FAILED, quota.CauseAuth, "token_expired")
	case has("previous_response_not_found"):
		return other(providerv1.Outcome_OUTCOME_CONTINUITY_LOST)
	case status >= 400 && status != 403:
		return other(providerv1.Outcome_OUTCOME_CLIENT_ERROR)
	}
	return other(providerv1.Outcome_OUTCOME_UNKNOWN_ERROR)
}

var errNoAnswer = errors.New("no answer in time")

// fakeEvents keeps all events.
type fakeEvents struct {
	mu      sync.Mutex // guards all below
	all     []Event
	changed chan struct{}
}

func newFakeEvents() *fakeEvents { return &fakeEvents{changed: make(chan struct{})} }

func (f *fakeEvents) Record(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, e)
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait blocks until there are n events of the operation. Of a request's events, "request" is the last.
func (f *fakeEvents) wait(ctx context.Context, operation string, n int) []Event {
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if some := f.of(operation); len(some) >= n {
			return some
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// of gives the events of an operation.
func (f *fakeEvents) of(operation string) []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	var some []Event
	for _, e := range f.all {
		if e.Operation == operation {
			some = append(some, e)
		}
	}
	return some
}

// fakeKeys knows one key.
type fakeKeys string

func (k fakeKeys) Allowed(_, key string) bool { return key == string(k) }
