package state

import "time"

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

// flush writes the coalesced rows that are due, at most a batch, or all that changed.
func (s *Store) flush(now time.Time, everything bool) error {
	var entries []entry
	wanted := func(w *writing) bool {
		return everything && w.dirty || w.due(now) && len(entries) < flushBatch
	}
	for _, a := range s.accounts {
		if wanted(&a.writing) {
			a.writing.done(now)
			entries = append(entries, clocksOf(a.Account)...)
		}
	}
	if wanted(&s.demandWriting) {
		s.demandWriting.done(now)
		entries = append(entries, &demand{Demand: s.demand})
	}
	waiting := s.touched[:0]
	var written []*thread
	for _, t := range s.touched {
		if !wanted(&t.writing) {
			waiting = append(waiting, t)
			continue
		}
		t.writing.done(now)
		if t.binding != nil {
			entries, written = append(entries, t.row()), append(written, t)
		}
	}
	clear(s.touched[len(waiting):])
	s.touched = waiting
	if len(entries) == 0 {
		return nil
	}
	if _, err := s.commit(entries...); err != nil {
		return err
	}
	return s.reread(written)
}

// reread takes up the rows that were written, and lets go of conversations that waited for nothing else.
func (s *Store) reread(written []*thread) error {
	txn := s.db.Txn(false)
	for _, t := range written {
		row, err := first[*bindingRow](txn, tableBindings, t.id)
		if err != nil {
			return err
		}
		t.binding = row
		s.release(t.conversation)
	}
	return nil
}
