package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"
)

const (
	// expireBatch bounds the bindings that one transaction drops.
	expireBatch = 1000
	// expireInterval is how often idle bindings are looked for.
	expireInterval = time.Hour
	// maxBindingBytes keeps snapshots, which hold little else, within what the log takes.
	maxBindingBytes = 56 << 20
	// rowBytes is what a row takes in a snapshot beside its texts, moveBytes what a move takes.
	rowBytes  = 260
	moveBytes = 160
)

// space is what bindings take.
type space struct{ bindings, bytes int }

// space of a row is an upper bound: every character may need an escape of two bytes.
func (r *bindingRow) space() space {
	texts := len(r.Session) + len(r.Model) + len(r.Account) + len(r.Cause)
	for i := range r.Moves {
		texts += len(r.Moves[i].From) + len(r.Moves[i].To) + len(r.Moves[i].Cause)
	}
	return space{bindings: 1, bytes: rowBytes + 2*texts + moveBytes*len(r.Moves)}
}

func (s space) plus(other space) space {
	return space{bindings: s.bindings + other.bindings, bytes: s.bytes + other.bytes}
}

func (s space) minus(other space) space {
	return space{bindings: s.bindings - other.bindings, bytes: s.bytes - other.bytes}
}

// within reports whether it fits.
func (s space) within(limit space) bool {
	return s.bindings <= limit.bindings && s.bytes <= limit.bytes
}

// expire drops bindings that were idle too long and, when there are too many, the longest idle until there is a little room
// again. It looks for them beside the store, and drops only those that nobody used in the meantime.
func (s *Store) expire(now time.Time) error {
	s.mu.Lock()
	txn, idleSince, excess := s.db.Txn(false), now.Add(-s.idle), space{}
	if limit := s.limit; !s.used.within(limit) {
		excess = s.used.minus(space{bindings: limit.bindings - limit.bindings/100, bytes: limit.bytes - limit.bytes/100})
	}
	s.mu.Unlock()
	if err := s.restamp(txn, now); err != nil {
		return err
	}
	due, err := longestIdle(txn, idleSince, excess)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(due, expireBatch) {
		if err := s.unbindIdle(batch, now); err != nil {
			return fmt.Errorf("expire bindings: %w", err)
		}
	}
	return nil
}

// longestIdle lists the bindings not used since the limit and, if they take less than excess, more of the longest idle.
func longestIdle(txn *memdb.Txn, limit time.Time, excess space) ([]*bindingRow, error) {
	var due, others []*bindingRow
	err := all(txn, tableBindings, func(r *bindingRow) bool {
		switch {
		case r.LastUsed.Before(limit):
			due, excess = append(due, r), excess.minus(r.space())
		case excess != space{}:
			others = append(others, r)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(others, func(a, b *bindingRow) int { return a.LastUsed.Compare(b.LastUsed) })
	for _, r := range others {
		if excess.within(space{}) {
			break
		}
		due, excess = append(due, r), excess.minus(r.space())
	}
	return due, nil
}

func (s *Store) unbindIdle(rows []*bindingRow, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	ids := make([]bindingID, 0, len(rows))
	for _, r := range rows {
		if live := s.live[r.Session]; live == nil || !live.model(r.Model).busy() {
			ids = append(ids, bindingID{r.Session, r.Model})
		}
	}
	_, err := s.unbind(ids, "idle", now)
	return err
}

// restamp lets bindings count as used now that the log says were used in a future out of reach: the clock was wrong then,
// and they would never be idle, nor the clock be believed at the next start.
func (s *Store) restamp(txn *memdb.Txn, now time.Time) error {
	var ahead []*bindingRow
	if err := all(txn, tableBindings, func(r *bindingRow) bool {
		if r.LastUsed.Sub(now) > clockLeap {
			ahead = append(ahead, r)
		}
		return true
	}); err != nil {
		return err
	}
	for batch := range slices.Chunk(ahead, expireBatch) {
		if err := s.restampBatch(batch, now); err != nil {
			return fmt.Errorf("put times of bindings right: %w", err)
		}
	}
	return nil
}

func (s *Store) restampBatch(rows []*bindingRow, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	var entries []entry
	var models []*liveModel
	for _, seen := range rows {
		row, err := first[*bindingRow](s.db.Txn(false), tableBindings, bindingID{seen.Session, seen.Model})
		if err != nil {
			return err
		}
		if row != seen { // written in the meantime
			continue
		}
		entries = append(entries, row.usedAt(now))
		if live := s.live[row.Session]; live != nil {
			models = append(models, live.model(row.Model))
		}
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.commit(entries...); err != nil {
		return err
	}
	return s.reread(models)
}
