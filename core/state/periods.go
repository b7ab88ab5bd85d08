package state

import (
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// accepted counts one accepted request of the model into the pool's statistics.
func (s *Store) accepted(m *liveModel, now time.Time) {
	if m.active {
		s.demand.Continued(now.Sub(m.lastAccepted))
		s.demandWriting.dirty = true
	}
	m.active, m.lastAccepted = true, now
	s.periods.began(m, now)
}

// sweep ends the active periods that have been idle long enough, in amortised constant time.
func (s *Store) sweep(now time.Time) {
	for {
		m, ok := s.periods.next(now.Add(-quota.ActivePeriodGap))
		if !ok {
			return
		}
		s.demand.PeriodEnded()
		s.demandWriting.dirty = true
		m.active = false
		if m.binding != nil {
			s.ensure(m.binding.account()).LiveSessions--
		}
		s.release(m.session)
	}
}

// periods remembers accepted requests in their order, so that the end of a period is found without a search.
type periods struct {
	marks []periodMark
	head  int
}

type periodMark struct {
	live *liveModel
	at   time.Time
}

func (p *periods) began(m *liveModel, at time.Time) {
	p.marks = append(p.marks, periodMark{m, at})
}

// next gives a model whose last accepted request was at or before the limit.
func (p *periods) next(limit time.Time) (*liveModel, bool) {
	for p.head < len(p.marks) && !p.marks[p.head].at.After(limit) {
		m := p.marks[p.head]
		p.marks[p.head] = periodMark{}
		p.head++
		if m.live.active && m.live.lastAccepted.Equal(m.at) {
			p.compact()
			return m.live, true
		}
	}
	p.compact()
	return nil, false
}

func (p *periods) compact() {
	if p.head > 64 && p.head*2 > len(p.marks) {
		p.marks = append(p.marks[:0], p.marks[p.head:]...)
		p.head = 0
	}
}

func (p *periods) notLaterThan(at time.Time) {
	for i := p.head; i < len(p.marks); i++ {
		if p.marks[i].at.After(at) {
			p.marks[i].at = at
		}
	}
}
