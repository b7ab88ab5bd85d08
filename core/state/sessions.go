package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// SessionFilter selects sessions; empty fields select all.
type SessionFilter struct {
	Provider string
	// Account, if it is not zero: sessions with a binding to it.
	Account quota.AccountID
	// Limit of the answer, 0: none.
	Limit int
}

// Sessions lists sessions, most recently used first.
func (s *Store) Sessions(filter SessionFilter) []SessionView {
	s.mu.Lock()
	txn := s.db.Txn(false)
	overlays := make(map[string]overlay, len(s.live))
	for key, live := range s.live {
		overlays[key] = live.overlay()
	}
	s.mu.Unlock()
	var views []SessionView
	keep := func(v *SessionView) {
		if v != nil && filter.selects(v) {
			v.Hash = SessionHash(v.Key)
			views = append(views, *v)
		}
	}
	var current *SessionView
	_ = all(txn, tableBindings, func(r *bindingRow) bool { // bindings of a session follow each other
		if current == nil || current.Key != r.Session {
			keep(current)
			current = &SessionView{Key: r.Session, Provider: providerOf(r.Session)}
		}
		current.add(r, overlays[r.Session])
		return true
	})
	keep(current)
	slices.SortStableFunc(views, func(a, b SessionView) int { return b.LastUsed.Compare(a.LastUsed) })
	if filter.Limit > 0 && len(views) > filter.Limit {
		views = views[:filter.Limit]
	}
	return views
}

func (f SessionFilter) selects(v *SessionView) bool {
	if f.Provider != "" && f.Provider != v.Provider {
		return false
	}
	return f.Account == (quota.AccountID{}) ||
		slices.ContainsFunc(v.Bindings, func(b BindingView) bool { return b.Account == f.Account })
}

// overlay is what is known of a session in memory beyond its rows.
type overlay struct {
	lastUsed map[string]time.Time
	inFlight int
	live     bool
}

func (live *liveSession) overlay() overlay {
	o := overlay{lastUsed: make(map[string]time.Time, len(live.models))}
	for _, m := range live.models {
		o.lastUsed[m.id.model] = m.lastUsed()
		o.inFlight += m.inFlight
		o.live = o.live || m.active
	}
	return o
}

func (v *SessionView) add(r *bindingRow, o overlay) {
	b := BindingView{
		Model: r.Model, Account: r.account(), BoundAt: r.BoundAt, LastUsed: r.LastUsed,
		BoundBy: r.BoundBy, Cause: r.Cause, Moves: r.Moves,
	}
	if used := o.lastUsed[r.Model]; used.After(b.LastUsed) {
		b.LastUsed = used
	}
	if b.LastUsed.After(v.LastUsed) {
		v.LastUsed = b.LastUsed
	}
	v.Bindings = append(v.Bindings, b)
	v.InFlight, v.Live = o.inFlight, o.live
}

// Session reads one by its key.
func (s *Store) Session(key string) (SessionView, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session(key)
}

func (s *Store) session(key string) (SessionView, bool) {
	view := SessionView{Key: key, Hash: SessionHash(key), Provider: providerOf(key)}
	var o overlay
	if live := s.live[key]; live != nil {
		o = live.overlay()
	}
	rows, err := s.db.Txn(false).Get(tableBindings, indexPrefix, sessionPrefix(key))
	if err != nil {
		return view, false
	}
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		view.add(raw.(*bindingRow), o)
	}
	return view, len(view.Bindings) > 0
}

// FindSessions gives the keys of at most limit sessions whose key, identity or hash is the subject, or begins with it. If
// one is the subject exactly, it is the only one.
func (s *Store) FindSessions(subject string, limit int) []string {
	s.mu.Lock()
	txn := s.db.Txn(false)
	s.mu.Unlock()
	var found []string
	exact := ""
	last := ""
	_ = all(txn, tableBindings, func(r *bindingRow) bool {
		if r.Session == last {
			return true
		}
		last = r.Session
		_, identity, _ := strings.Cut(r.Session, "/")
		names := [...]string{r.Session, identity, SessionHash(r.Session)}
		if slices.Contains(names[:], subject) {
			exact = r.Session
			return false
		}
		if len(found) < limit && slices.ContainsFunc(names[:], func(n string) bool { return strings.HasPrefix(n, subject) }) {
			found = append(found, r.Session)
		}
		return true
	})
	if exact != "" {
		return []string{exact}
	}
	return found
}

// MoveSession binds all models of a session to an account, by the operator's word: all or none. If all live there already,
// the sequence is 0.
func (s *Store) MoveSession(key string, to quota.AccountID, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts[to] == nil || !s.accounts[to].configured || to.Provider != providerOf(key) {
		return 0, fmt.Errorf("move session to %s: %w", to, ErrUnknownAccount)
	}
	now := s.moment(at)
	live := s.liveSession(key)
	defer s.release(live)
	bound := slices.DeleteFunc(slices.Clone(live.models), func(m *liveModel) bool { return m.binding == nil })
	if len(bound) == 0 {
		return 0, fmt.Errorf("move session: %w", ErrUnknownSession)
	}
	var entries []entry
	var moved []*liveModel
	for _, m := range bound {
		if m.binding.account() != to {
			entries, moved = append(entries, m.movedTo(to, now)), append(moved, m)
		}
	}
	if len(entries) == 0 {
		return 0, nil
	}
	if sequence, err = s.commit(entries...); err != nil {
		return 0, fmt.Errorf("move session: %w", err)
	}
	for _, m := range moved {
		if err := s.settleIn(m, to, now); err != nil {
			return 0, fmt.Errorf("move session: %w", err)
		}
	}
	s.notify()
	return sequence, nil
}

// ForgetSession drops all bindings of a session: its next request is placed anew.
func (s *Store) ForgetSession(key string, at time.Time) (sequence uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment(at)
	live := s.liveSession(key)
	defer s.release(live)
	var ids []bindingID
	for _, m := range live.models {
		if m.binding != nil {
			ids = append(ids, m.id)
		}
	}
	if len(ids) == 0 {
		return 0, fmt.Errorf("forget session: %w", ErrUnknownSession)
	}
	return s.unbind(ids, "operator", now)
}

// SessionAccount is the account of the session's most recently accepted binding.
func (s *Store) SessionAccount(session string) (quota.AccountID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session = boundedSession(providerOf(session), session)
	if session == "" {
		return quota.AccountID{}, false
	}
	live := s.liveSession(session)
	defer s.release(live)
	var newest *liveModel
	for _, m := range live.models {
		if m.binding != nil && (newest == nil || m.lastUsed().After(newest.lastUsed())) {
			newest = m
		}
	}
	if newest == nil {
		return quota.AccountID{}, false
	}
	return newest.binding.account(), true
}
