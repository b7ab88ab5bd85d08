package state

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// maxExport bounds what Import reads. Export stays under it: its rows are shorter than those of a snapshot.
const maxExport = 64 << 20

// maxReason bounds what is told of an import that is not valid: the reason quotes names that it holds.
const maxReason = 200

// Imported counts what Import did.
type Imported struct {
	// Added bindings, and those Kept because this machine has a newer one of the same session and model.
	Added int `json:"added"`
	Kept  int `json:"kept"`
	// Sequence that must be durable for all to be.
	Sequence uint64 `json:"sequence"`
}

// importBatch bounds the bindings that one transaction takes over.
const importBatch = 500

// Import takes over exported bindings. If they are not valid, none is taken, and the error is ErrInvalid. A binding of this
// machine that was used later stays. One to an account that is not configured here is kept and inert until it is.
func (s *Store) Import(r io.Reader, at time.Time) (Imported, error) {
	rows, exportedAt, err := readExport(r)
	if err != nil {
		return Imported{}, fmt.Errorf("import bindings: %w", err)
	}
	var done Imported
	for batch := range slices.Chunk(rows, importBatch) {
		if err := s.importRows(batch, exportedAt, at, &done); err != nil {
			return done, fmt.Errorf("import bindings: %w", err)
		}
	}
	return done, nil
}

func (s *Store) importRows(rows []*bindingRow, exportedAt, at time.Time, done *Imported) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment(at)
	ahead := max(exportedAt.Sub(now), 0)
	txn := s.db.Txn(false)
	var entries []entry
	var replaced []*bindingRow // by the entry of the same index; nil for none
	for _, row := range rows {
		row.BoundAt, row.LastUsed = onOurClock(row.BoundAt, ahead, now), onOurClock(row.LastUsed, ahead, now)
		old, err := first[*bindingRow](txn, tableBindings, bindingID{row.Session, row.Model})
		if err != nil {
			return err
		}
		if old != nil && !s.lastUsed(old).Before(row.LastUsed) {
			done.Kept++
			continue
		}
		entries, replaced = append(entries, row), append(replaced, old)
	}
	if len(entries) == 0 {
		return nil
	}
	sequence, err := s.commit(entries...)
	if err != nil {
		return err
	}
	done.Added, done.Sequence = done.Added+len(entries), sequence
	for i, e := range entries {
		if err := s.adopt(e.(*bindingRow), replaced[i], now); err != nil {
			return err
		}
	}
	s.notify()
	return nil
}

// onOurClock is a time of a machine whose clock is that much ahead of ours, and never in the future.
func onOurClock(t time.Time, ahead time.Duration, now time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	t = t.Add(-ahead)
	if checkTime("", t) != nil {
		return time.Unix(0, 0).UTC()
	}
	if t.After(now) {
		return now
	}
	return t
}

// lastUsed of a row, newer than it if the session is in memory.
func (s *Store) lastUsed(row *bindingRow) time.Time {
	if live := s.live[row.Session]; live != nil {
		return live.model(row.Model).lastUsed()
	}
	return row.LastUsed
}

// adopt counts a binding that was written without a request, in place of an old one.
func (s *Store) adopt(row, old *bindingRow, now time.Time) error {
	var active bool
	var cadence float64
	if live := s.live[row.Session]; live != nil {
		m := live.model(row.Model)
		active, cadence = m.active, m.cadence.Value(now)
		written, err := first[*bindingRow](s.db.Txn(false), tableBindings, m.id)
		if err != nil {
			return err
		}
		m.bind(written)
	}
	a := s.ensure(row.account())
	s.used = s.used.plus(row.space())
	if old != nil {
		s.used = s.used.minus(old.space())
		s.unsettle(old, active, s.accounts[old.account()], cadence, now)
		if active {
			a.LiveSessions++
		}
	}
	a.bindings++
	return nil
}

func readExport(r io.Reader) (rows []*bindingRow, exportedAt time.Time, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxExport+1))
	if err != nil {
		return nil, exportedAt, err
	}
	if len(data) > maxExport {
		return nil, exportedAt, invalid(fmt.Sprintf("export of at most %d bytes", maxExport))
	}
	var in export
	if err := decodeStrictly(data, &in); err != nil {
		return nil, exportedAt, fmt.Errorf("%w: %.*s", ErrInvalid, maxReason, err)
	}
	if in.Format != exportFormat {
		return nil, exportedAt, invalid(fmt.Sprintf("export of format %d, this release knows %d", in.Format, exportFormat))
	}
	seen := make(map[bindingID]bool, len(in.Bindings))
	rows = make([]*bindingRow, 0, len(in.Bindings))
	for i := range in.Bindings {
		row := in.Bindings[i].row()
		id := bindingID{row.Session, row.Model}
		err := row.check()
		if err == nil && seen[id] {
			err = invalid("session and model, which come twice")
		}
		if err != nil {
			return nil, exportedAt, fmt.Errorf("binding %d: %w", i+1, err)
		}
		seen[id] = true
		rows = append(rows, row)
	}
	return rows, in.ExportedAt, nil
}

func (b *exportedBinding) row() *bindingRow {
	return &bindingRow{
		Session: b.Session, Model: b.Model, Account: b.Account,
		BoundAt: b.BoundAt.UTC(), LastUsed: b.LastUsed.UTC(), BoundBy: b.BoundBy, Cause: b.Cause,
	}
}
