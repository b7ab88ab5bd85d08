package state

import (
	"slices"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// conversation is a session that is active, or has work in flight: its bindings and what changes with every request.
type conversation struct {
	key     string
	threads []*thread
}

// thread is one model of a conversation.
type thread struct {
	conversation *conversation
	id           bindingID
	// binding is the row in the store, nil while unbound.
	binding *bindingRow
	// pending is the attempt that is being placed for it; others follow.
	pending *attempt
	// cadence counts the thread's requests; zero until the first is accepted.
	cadence quota.Faded
	// active: requests were accepted with gaps under quota.ActivePeriodGap, the last at lastAccepted.
	active       bool
	lastAccepted time.Time
	inFlight     int
	writing      writing
}

// conversation takes up a session, with its bindings.
func (s *Store) conversation(key string) *conversation {
	c := s.conversations[key]
	if c != nil {
		return c
	}
	var bindings []*bindingRow
	rows, err := s.db.Txn(false).Get(tableBindings, indexPrefix, sessionPrefix(key))
	if err == nil { // the schema has the index: nothing else can fail
		for raw := rows.Next(); raw != nil; raw = rows.Next() {
			bindings = append(bindings, raw.(*bindingRow))
		}
	}
	return s.resume(key, bindings)
}

// resume makes the conversation of a session that has these bindings.
func (s *Store) resume(key string, bindings []*bindingRow) *conversation {
	c := &conversation{key: key}
	for _, row := range bindings {
		c.add(row.Model).bind(row)
	}
	s.conversations[key] = c
	return c
}

// release drops a conversation from memory when nothing of it is under way; its bindings stay in the store.
func (s *Store) release(c *conversation) {
	if c == nil || slices.ContainsFunc(c.threads, (*thread).busy) {
		return
	}
	delete(s.conversations, c.key)
}

func (t *thread) busy() bool { return t.active || t.inFlight > 0 || t.writing.dirty }

// maxThreads bounds the models of a session that are told apart; the others share one binding under quota.OtherModels.
const maxThreads = 32

// thread finds or adds the thread of a model.
func (c *conversation) thread(model string) *thread {
	for _, t := range c.threads {
		if t.id.model == model {
			return t
		}
	}
	if len(c.threads) >= maxThreads && model != quota.OtherModels {
		return c.thread(quota.OtherModels)
	}
	return c.add(model)
}

func (c *conversation) add(model string) *thread {
	t := &thread{conversation: c, id: bindingID{c.key, model}}
	c.threads = append(c.threads, t)
	return t
}

// bind takes up a row.
func (t *thread) bind(row *bindingRow) {
	t.binding = row
	t.cadence = quota.Faded{Count: row.Cadence, At: row.LastUsed}
	t.writing.at = row.LastUsed
}

// row is the binding with what is known in memory.
func (t *thread) row() *bindingRow {
	row := *t.binding
	row.BoundSequence = row.boundSequence()
	row.LastUsed, row.Cadence = t.cadence.At, t.cadence.Count
	return &row
}

// lastUsed of the thread, newer than its row.
func (t *thread) lastUsed() time.Time {
	if t.binding == nil {
		return time.Time{}
	}
	if t.cadence.At.After(t.binding.LastUsed) {
		return t.cadence.At
	}
	return t.binding.LastUsed
}

// sessionCadence is what the thread brings to the account that it goes to; a new session starts at the prior.
func (s *Store) sessionCadence(t *thread, now time.Time) float64 {
	if t.binding == nil && t.cadence.At.IsZero() {
		return s.demand.NewSessionCadence()
	}
	return t.cadence.Value(now)
}

// touch marks the thread's row as older than what is known.
func (s *Store) touch(t *thread) {
	if !t.writing.dirty {
		t.writing.dirty = true
		s.touched = append(s.touched, t)
	}
}

// accepted counts one accepted request of the thread into the pool's statistics.
func (s *Store) accepted(t *thread, now time.Time) {
	if t.active {
		s.demand.Continued(now.Sub(t.lastAccepted))
		s.demandWriting.dirty = true
	}
	t.active, t.lastAccepted = true, now
	s.periods.began(t, now)
}

// sweep ends the active periods that have been idle long enough, in amortised constant time.
func (s *Store) sweep(now time.Time) {
	for {
		t, ok := s.periods.next(now.Add(-quota.ActivePeriodGap))
		if !ok {
			return
		}
		s.demand.PeriodEnded()
		s.demandWriting.dirty = true
		t.active = false
		if t.binding != nil {
			s.ensure(t.binding.account()).LiveSessions--
		}
		s.release(t.conversation)
	}
}

// periods remembers accepted requests in their order, so that the end of a period is found without a search.
type periods struct {
	marks []periodMark
	head  int
}

type periodMark struct {
	thread *thread
	at     time.Time
}

func (p *periods) began(t *thread, at time.Time) {
	p.marks = append(p.marks, periodMark{t, at})
}

// next gives a thread whose last accepted request was at or before the limit.
func (p *periods) next(limit time.Time) (*thread, bool) {
	for p.head < len(p.marks) && !p.marks[p.head].at.After(limit) {
		m := p.marks[p.head]
		p.marks[p.head] = periodMark{}
		p.head++
		if m.thread.active && m.thread.lastAccepted.Equal(m.at) {
			p.compact()
			return m.thread, true
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
