package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// sessionsListed is how many sessions a list has when no limit is asked for.
const sessionsListed = 1000

// historyKept is how many events an answer about one session or request has at most.
const historyKept = 200

// Sessions, most recently used first.
func (d *daemon) Sessions(_ context.Context, filter api.SessionFilter) ([]api.Session, error) {
	wanted := state.SessionFilter{Provider: filter.Provider, Limit: filter.Limit}
	if wanted.Limit == 0 {
		wanted.Limit = sessionsListed
	}
	if filter.Account != "" {
		account, err := d.accountNamed(filter.Provider, filter.Account)
		if err != nil {
			return nil, err
		}
		wanted.Account = account
	}
	views := d.store.Sessions(wanted)
	if len(views) == 0 {
		if err := d.filterKnown(wanted); err != nil {
			return nil, err
		}
	}
	sessions := make([]api.Session, 0, len(views))
	for _, view := range views {
		sessions = append(sessions, sessionOf(view))
	}
	return sessions, nil
}

// filterKnown says of a filter that finds nothing whether it names what there is. Sessions may live on an account that is
// no longer configured, and are listed then.
func (d *daemon) filterKnown(filter state.SessionFilter) error {
	if filter.Provider != "" {
		if err := d.knownProvider(filter.Provider); err != nil {
			return err
		}
	}
	if filter.Account != (quota.AccountID{}) {
		if _, err := d.store.AccountByID(filter.Account, d.clock.Now()); err != nil {
			return unknownAccount(filter.Account)
		}
	}
	return nil
}

// accountNamed finds an account by provider/name, or by its name alone when that says enough.
func (d *daemon) accountNamed(provider, name string) (quota.AccountID, error) {
	if id, ok := quota.ParseAccountID(name); ok {
		return id, nil
	}
	var found []quota.AccountID
	for _, view := range d.store.Accounts(d.clock.Now()) {
		if view.ID.Name == name && (provider == "" || view.ID.Provider == provider) {
			found = append(found, view.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return quota.AccountID{}, &api.Error{
			Code: api.CodeNotFound, Message: fmt.Sprintf("no account is named %q", name), Remedy: "\"noria accounts list\" shows them",
		}
	}
	err := api.Errorf(api.CodeAmbiguous, "%d accounts are named %q", len(found), name)
	err.Remedy = "write PROVIDER/NAME"
	return quota.AccountID{}, err
}

// Session finds one by key, identity or hash, or a unique beginning of these.
func (d *daemon) Session(_ context.Context, subject string) (api.SessionDetail, error) {
	view, err := d.find(subject)
	if err != nil {
		return api.SessionDetail{}, err
	}
	return d.detail(view), nil
}

func (d *daemon) detail(view state.SessionView) api.SessionDetail {
	history := d.recorder.list.Recent(historyKept, func(e events.Event) bool { return e.SessionHash == view.Hash })
	return api.SessionDetail{Session: sessionOf(view), History: history}
}

// find looks a session up by its key, its identity, its hash, or a unique beginning of one of these.
func (d *daemon) find(subject string) (state.SessionView, error) {
	keys := d.store.FindSessions(subject, 2)
	if len(keys) == 1 {
		if view, ok := d.store.Session(keys[0]); ok {
			return view, nil
		}
	}
	if len(keys) > 1 {
		return state.SessionView{}, &api.Error{
			Code: api.CodeAmbiguous, Message: fmt.Sprintf("more than one session matches %q", subject), Remedy: "write more of it",
		}
	}
	return state.SessionView{}, &api.Error{
		Code: api.CodeNotFound, Message: fmt.Sprintf("no session matches %q", subject),
		Remedy: "\"noria sessions list\" shows them; the beginning of a key, an identity or a hash is enough",
	}
}

// MoveSession binds all models of a session to an account, by the operator's word.
func (d *daemon) MoveSession(ctx context.Context, subject string, account quota.AccountID) (api.SessionDetail, error) {
	view, err := d.find(subject)
	if err != nil {
		return api.SessionDetail{}, err
	}
	if account.Provider != view.Provider {
		return api.SessionDetail{}, &api.Error{
			Code: api.CodeRefused, Message: fmt.Sprintf("%s is a session of %s, and %s is no account of it", view.Key, view.Provider, account),
			Remedy: "sessions never change their provider",
		}
	}
	sequence, err := d.store.MoveSession(view.Key, account, d.clock.Now())
	if errors.Is(err, state.ErrUnknownAccount) {
		return api.SessionDetail{}, unknownAccount(account)
	}
	if err != nil {
		return api.SessionDetail{}, err
	}
	if err := d.store.Durable(ctx, sequence); err != nil {
		return api.SessionDetail{}, err
	}
	d.recorder.add(events.Event{
		At: d.clock.Now(), Component: events.ComponentAPI, Operation: events.OperationMoved, SessionHash: view.Hash,
		Provider: account.Provider, Account: account.Name, Reason: "operator",
	})
	return d.Session(ctx, view.Key)
}

// ForgetSession removes all bindings of a session.
func (d *daemon) ForgetSession(ctx context.Context, subject string) error {
	view, err := d.find(subject)
	if err != nil {
		return err
	}
	sequence, err := d.store.ForgetSession(view.Key, d.clock.Now())
	if err != nil {
		return err
	}
	d.recorder.add(events.Event{
		At: d.clock.Now(), Component: events.ComponentAPI, Operation: events.OperationForgotten,
		SessionHash: view.Hash, Provider: view.Provider,
	})
	return d.store.Durable(ctx, sequence)
}

// Explain says why a session is where it is, why a request went where it went, or where a new session would go.
func (d *daemon) Explain(_ context.Context, req api.ExplainRequest) (api.Explanation, error) {
	if req.Subject == "" {
		if err := d.knownProvider(req.Provider); err != nil {
			return api.Explanation{}, err
		}
		why := d.store.ExplainNew(req.Provider, req.Model, d.clock.Now())
		return api.Explanation{Model: req.Model, Now: &why.Now}, nil
	}
	if why, ok := d.explainRequest(req.Subject); ok {
		if req.Model != "" {
			return api.Explanation{}, api.Errorf(api.CodeInvalid, "%s is a request and has its model; leave the model out", req.Subject)
		}
		return why, nil
	}
	view, err := d.find(req.Subject)
	var unknown *api.Error
	if errors.As(err, &unknown) && unknown.Code == api.CodeNotFound {
		unknown.Message += ", and no request of that id is remembered"
	}
	if err != nil {
		return api.Explanation{}, err
	}
	why, err := d.store.Explain(view.Key, req.Model, d.clock.Now())
	if err != nil {
		return api.Explanation{}, err
	}
	session := sessionOf(view)
	return api.Explanation{
		Session: &session, Model: why.Model, Last: why.Last, Now: &why.Now, History: d.detail(view).History,
		Reservations: d.reservations(view.Key),
	}, nil
}

// explainRequest tells of a request that is remembered. There is no decision about one that found its session bound.
func (d *daemon) explainRequest(id string) (explanation api.Explanation, ok bool) {
	explanation.Request, explanation.Reservations = id, d.reservations(id)
	decision, decided := d.store.RequestDecision(id)
	if decided {
		explanation.Last = &decision
	}
	explanation.History = d.recorder.list.Recent(historyKept, func(e events.Event) bool { return e.RequestID == id })
	if !decided && len(explanation.History) == 0 {
		return explanation, false
	}
	for _, e := range explanation.History {
		explanation.Model, explanation.Session = e.Model, d.sessionHashed(e.SessionHash)
	}
	return explanation, true
}

// reservations are those of a session by its key, or of a request.
func (d *daemon) reservations(subject string) []api.Reservation {
	var reservations []api.Reservation
	for _, r := range d.store.Reservations(subject) {
		reservation := api.Reservation{Request: r.RequestID, Account: r.Account.String(), Model: r.Model, StartedAt: r.StartedAt}
		for _, e := range r.Estimates {
			reservation.Estimates = append(reservation.Estimates, api.Estimate(e))
		}
		reservations = append(reservations, reservation)
	}
	return reservations
}

// sessionHashed is the session with that hash, nil if there is none any more.
func (d *daemon) sessionHashed(hash string) *api.Session {
	if hash == "" {
		return nil
	}
	view, err := d.find(hash)
	if err != nil {
		return nil
	}
	session := sessionOf(view)
	return &session
}

func sessionOf(view state.SessionView) api.Session {
	session := api.Session{
		Key: view.Key, Hash: view.Hash, Provider: view.Provider, LastUsed: view.LastUsed, InFlight: view.InFlight,
		Bindings: make([]api.Binding, 0, len(view.Bindings)),
	}
	for _, b := range view.Bindings {
		binding := api.Binding{
			Model: b.Model, Account: b.Account.String(), BoundAt: b.BoundAt, LastUsed: b.LastUsed,
			BoundBy: string(b.BoundBy), Cause: b.Cause,
		}
		for _, m := range b.Moves {
			binding.Moves = append(binding.Moves, api.Move{
				From: view.Provider + "/" + m.From, To: view.Provider + "/" + m.To, At: m.At, By: string(m.By), Cause: m.Cause,
			})
		}
		session.Bindings = append(session.Bindings, binding)
	}
	return session
}
