package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/placement"
)

// Explanation is why a session is where it is, and what would happen to its next request.
type Explanation struct {
	// Session is nil for one that would be new.
	Session *SessionView `json:"session,omitempty"`
	Model   string       `json:"model,omitempty"`
	// Last is the newest decision that chose an account for it in this life of the process.
	Last *placement.Decision `json:"last,omitempty"`
	// Now is what the next request would get. Its candidates are listed even when the session stays.
	Now placement.Decision `json:"now"`
}

// Explain says where the session lives and why, and what its next request for the model would get. Nothing is reserved.
func (s *Store) Explain(key, model string, at time.Time) (Explanation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	view, ok := s.session(key)
	if !ok {
		return Explanation{}, fmt.Errorf("explain session: %w", ErrUnknownSession)
	}
	if model == "" {
		model = newestModel(view)
	}
	e := Explanation{Session: &view, Model: model, Last: s.decisions.find(key, model)}
	e.Now = s.whatIf(placement.Request{Session: key, Provider: view.Provider, Model: model, Binds: true, At: at})
	return e, nil
}

func newestModel(v SessionView) string {
	model, newest := "", time.Time{}
	for _, b := range v.Bindings {
		if model == "" || b.LastUsed.After(newest) {
			model, newest = b.Model, b.LastUsed
		}
	}
	return model
}

// ExplainNew says what the first request of a new session would get. Nothing is reserved.
func (s *Store) ExplainNew(provider, model string, at time.Time) Explanation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Explanation{Model: model, Now: s.whatIf(placement.Request{Provider: provider, Model: model, Binds: true, At: at})}
}

// whatIf decides without reserving. It also lists the candidates of a session that stays where it is.
func (s *Store) whatIf(req placement.Request) placement.Decision {
	req = s.bounded(req)
	if req.Session == "" {
		return s.decide(nil, req)
	}
	live := s.liveSession(req.Session)
	defer s.release(live)
	d := s.decide(live.model(req.Model), req)
	if d.Candidates == nil {
		d.Candidates = s.decide(nil, req).Candidates
	}
	return d
}
