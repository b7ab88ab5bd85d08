package state

import (
	"slices"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// liveSession is a session that is active, or has work in flight: its bindings and what changes with every request.
type liveSession struct {
	key    string
	models []*liveModel
}

// liveModel is one model of such a session.
type liveModel struct {
	session *liveSession
	id      bindingID
	// binding is the row in the store, nil while unbound.
	binding *bindingRow
	// pending is the attempt that is being placed for it; others follow.
	pending *attempt
	// cadence counts its requests; zero until the first is accepted.
	cadence quota.Faded
	// active: requests were accepted with gaps under quota.ActivePeriodGap, the last at lastAccepted.
	active       bool
	lastAccepted time.Time
	inFlight     int
	writing      writing
}

// liveSession takes up a session, with its bindings.
func (s *Store) liveSession(key string) *liveSession {
	live := s.live[key]
	if live != nil {
		return live
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

// resume takes up a session that has these bindings.
func (s *Store) resume(key string, bindings []*bindingRow) *liveSession {
	live := &liveSession{key: key}
	for _, row := range bindings {
		live.add(row.Model).bind(row)
	}
	s.live[key] = live
	return live
}

// release drops a session from memory when nothing of it is under way; its bindings stay in the store.
func (s *Store) release(live *liveSession) {
	if live == nil || slices.ContainsFunc(live.models, (*liveModel).busy) {
		return
	}
	delete(s.live, live.key)
}

func (m *liveModel) busy() bool { return m.active || m.inFlight > 0 || m.writing.dirty }

// maxModels bounds the models of a session that are told apart; the others share one binding under quota.OtherModels.
const maxModels = 32

// model finds or adds one of a name.
func (live *liveSession) model(name string) *liveModel {
	for _, m := range live.models {
		if m.id.model == name {
			return m
		}
	}
	if len(live.models) >= maxModels && name != quota.OtherModels {
		return live.model(quota.OtherModels)
	}
	return live.add(name)
}

func (live *liveSession) add(model string) *liveModel {
	m := &liveModel{session: live, id: bindingID{live.key, model}}
	live.models = append(live.models, m)
	return m
}

// bind takes up a row.
func (m *liveModel) bind(row *bindingRow) {
	m.binding = row
	m.cadence = quota.Faded{Count: row.Cadence, At: row.LastUsed}
	m.writing.at = row.LastUsed
}

// home is the account of the binding, zero without one.
func (m *liveModel) home() quota.AccountID {
	if m == nil || m.binding == nil {
		return quota.AccountID{}
	}
	return m.binding.account()
}

// row is the binding with what is known in memory.
func (m *liveModel) row() *bindingRow {
	row := *m.binding
	row.BoundSequence = row.boundSequence()
	row.LastUsed, row.Cadence = m.cadence.At, m.cadence.Count
	return &row
}

// lastUsed of the model, newer than its row.
func (m *liveModel) lastUsed() time.Time {
	if m.binding == nil {
		return time.Time{}
	}
	if m.cadence.At.After(m.binding.LastUsed) {
		return m.cadence.At
	}
	return m.binding.LastUsed
}

func (m *liveModel) touchAt(now time.Time) { m.cadence = m.cadence.Plus(0, now) }

// sessionCadence is what the model brings to the account that it goes to; a new session starts at the prior.
func (s *Store) sessionCadence(m *liveModel, now time.Time) float64 {
	if m.binding == nil && m.cadence.At.IsZero() {
		return s.demand.NewSessionCadence()
	}
	return m.cadence.Value(now)
}

// touch marks the model's row as older than what is known.
func (s *Store) touch(m *liveModel) {
	if !m.writing.dirty {
		m.writing.dirty = true
		s.touched = append(s.touched, m)
	}
}
