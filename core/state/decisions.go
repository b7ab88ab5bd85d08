package state

import "github.com/noria-dev/noria/core/placement"

// Bounds of what is remembered for explanations: so many decisions, with so many candidates in all.
const (
	rememberedDecisions  = 256
	rememberedCandidates = 8192
)

// decisions remembers the newest ones that chose or refused. It does not outlive the process.
type decisions struct {
	ring        [rememberedDecisions]remembered
	next, count int
	candidates  int
}

type remembered struct {
	request, session, model string
	decision                placement.Decision
}

func (d *decisions) add(req placement.Request, decision placement.Decision) {
	d.candidates += len(decision.Candidates)
	for d.count > 0 && (d.count == rememberedDecisions || d.candidates > rememberedCandidates) {
		oldest := &d.ring[(d.next-d.count+rememberedDecisions)%rememberedDecisions]
		d.candidates -= len(oldest.decision.Candidates)
		*oldest = remembered{}
		d.count--
	}
	d.ring[d.next] = remembered{req.RequestID, req.Session, req.Model, decision}
	d.next = (d.next + 1) % rememberedDecisions
	d.count++
}

// newest calls match from the newest to the oldest until it reports true.
func (d *decisions) newest(match func(*remembered) bool) *remembered {
	for i := 1; i <= d.count; i++ {
		r := &d.ring[(d.next-i+rememberedDecisions)%rememberedDecisions]
		if match(r) {
			return r
		}
	}
	return nil
}

func (d *decisions) find(session, model string) *placement.Decision {
	r := d.newest(func(r *remembered) bool { return r.session == session && r.model == model && r.decision.Placed })
	if r == nil {
		return nil
	}
	decision := r.decision
	return &decision
}

func (d *decisions) ofRequest(id string) (placement.Decision, bool) {
	r := d.newest(func(r *remembered) bool { return r.request == id })
	if id == "" || r == nil {
		return placement.Decision{}, false
	}
	return r.decision, true
}

// RequestDecision is the newest decision remembered of a client request.
func (s *Store) RequestDecision(requestID string) (placement.Decision, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decisions.ofRequest(requestID)
}
