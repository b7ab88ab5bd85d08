package state

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// writing coalesces the writes of what changes with every request.
type writing struct {
	dirty bool
	at    time.Time // of the last write
}

// writeInterval is the least time between two writes of the same coalesced row.
const writeInterval = time.Minute

func (w *writing) due(now time.Time) bool {
	return w.dirty && (w.at.IsZero() || now.Sub(w.at) >= writeInterval || now.Before(w.at))
}

func (w *writing) done(now time.Time) { w.dirty, w.at = false, now }

// flushBatch bounds the rows that one tick writes, so that no request waits long for the lock.
const flushBatch = 256

// coalesced is a row that is due, and the entries that write it.
type coalesced struct {
	*writing
	entries []entry
	live    *liveModel // whose binding it is, nil for other rows
}

// flush writes the coalesced rows that are due, at most a batch, or all that changed. A row that may not be written takes no
// other with it: it is left out until it changes again, and the error says which it is.
func (s *Store) flush(now time.Time, everything bool) error {
	rows := s.due(now, everything)
	err := s.writeRows(rows, now)
	if err != nil && !s.closed {
		err = s.writeOneByOne(rows, now)
	}
	s.touched = slices.DeleteFunc(s.touched, func(m *liveModel) bool { return !m.writing.dirty })
	return err
}

func (s *Store) due(now time.Time, everything bool) []coalesced {
	var rows []coalesced
	size := 0
	add := func(w *writing, m *liveModel, entries ...entry) {
		rows = append(rows, coalesced{w, entries, m})
		size += len(entries)
	}
	wanted := func(w *writing) bool {
		return everything && w.dirty || w.due(now) && size < flushBatch
	}
	for _, a := range s.accounts {
		if wanted(&a.writing) {
			add(&a.writing, nil, clocksOf(a.Account)...)
		}
	}
	if wanted(&s.demandWriting) {
		add(&s.demandWriting, nil, &demand{Demand: s.demand})
	}
	for _, m := range s.touched {
		switch {
		case m.binding == nil: // dropped since
			m.writing.done(now)
			s.release(m.session)
		case wanted(&m.writing):
			add(&m.writing, m, m.row())
		}
	}
	return rows
}

func (s *Store) writeRows(rows []coalesced, now time.Time) error {
	var entries []entry
	for _, row := range rows {
		entries = append(entries, row.entries...)
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.commit(entries...); err != nil {
		return err
	}
	var models []*liveModel
	for _, row := range rows {
		row.done(now)
		if row.live != nil {
			models = append(models, row.live)
		}
	}
	return s.reread(models)
}

func (s *Store) writeOneByOne(rows []coalesced, now time.Time) error {
	var refused []string
	var cause error
	for i := range rows {
		if err := s.writeRows(rows[i:i+1], now); err != nil {
			rows[i].done(now)
			refused, cause = append(refused, rows[i].name()), err
		}
	}
	if len(refused) == 0 {
		return nil
	}
	const shown = 3
	return fmt.Errorf("write %d rows, of %s: %w", len(refused), strings.Join(refused[:min(len(refused), shown)], ", "), cause)
}

// name says in a log what the row is about.
func (c coalesced) name() string {
	switch e := c.entries[0].(type) {
	case *bindingRow:
		return "session " + SessionHash(e.Session)
	case *clocks:
		return "account " + e.Account.String()
	}
	return "all sessions"
}

// reread takes up the rows that were written, and lets go of sessions that waited for nothing else.
func (s *Store) reread(written []*liveModel) error {
	txn := s.db.Txn(false)
	for _, m := range written {
		row, err := first[*bindingRow](txn, tableBindings, m.id)
		if err != nil {
			return err
		}
		m.binding = row
		s.release(m.session)
	}
	return nil
}
