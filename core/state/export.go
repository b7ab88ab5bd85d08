package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// exportFormat is the version of exported bindings.
const exportFormat = 1

// maxExport bounds what Import reads.
const maxExport = 64 << 20

type export struct {
	Format     int               `json:"format"`
	ExportedAt time.Time         `json:"exported_at"`
	Bindings   []exportedBinding `json:"bindings"`
}

type exportedBinding struct {
	Session  string    `json:"session"`
	Model    string    `json:"model,omitempty"`
	Account  string    `json:"account"`
	BoundAt  time.Time `json:"bound_at"`
	LastUsed time.Time `json:"last_used"`
	BoundBy  BoundBy   `json:"bound_by"`
	Cause    string    `json:"cause,omitempty"`
}

// Export writes all bindings as JSON, for another machine.
func (s *Store) Export(w io.Writer, at time.Time) error {
	s.mu.Lock()
	err := s.flush(s.moment(at), true)
	txn := s.db.Txn(false)
	s.mu.Unlock()
	if err != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("export bindings: %w", err)
	}
	out := export{Format: exportFormat, ExportedAt: at.UTC(), Bindings: []exportedBinding{}}
	if err := all(txn, tableBindings, func(r *bindingRow) bool {
		out.Bindings = append(out.Bindings, exportedBinding{r.Session, r.Model, r.Account, r.BoundAt, r.LastUsed, r.BoundBy, r.Cause})
		return true
	}); err != nil {
		return fmt.Errorf("export bindings: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("export bindings: %w", err)
	}
	return nil
}

// Imported counts what Import did.
type Imported struct {
	// Added bindings, and those Kept because this machine has a newer one of the same session and model.
	Added int `json:"added"`
	Kept  int `json:"kept"`
	// Sequence that must be durable for all to be.
	Sequence uint64 `json:"sequence"`
}

// Import takes over exported bindings. It takes all or, if one is not valid, none. A binding of this machine that was used
// later stays. One to an account that is not configured here is kept and inert until it is.
func (s *Store) Import(r io.Reader, at time.Time) (Imported, error) {
	rows, err := readExport(r)
	if err != nil {
		return Imported{}, fmt.Errorf("import bindings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment(at)
	var done Imported
	var fresh []*bindingRow
	for _, row := range rows {
		old, err := first[*bindingRow](s.db.Txn(false), tableBindings, bindingID{row.Session, row.Model})
		if err != nil {
			return done, fmt.Errorf("import bindings: %w", err)
		}
		if old != nil && !old.LastUsed.Before(row.LastUsed) {
			done.Kept++
			continue
		}
		if row.LastUsed.After(now) {
			row.LastUsed = now
		}
		fresh = append(fresh, row)
	}
	for _, row := range fresh {
		c := s.conversation(row.Session)
		t := c.thread(row.Model)
		old, cadence := t.binding, t.cadence.Value(now)
		if err := s.write(t, row); err != nil {
			return done, fmt.Errorf("import bindings: %w", err)
		}
		if old != nil {
			s.unsettle(old, t.active, s.accounts[old.account()], cadence, now)
		}
		a := s.ensure(row.account())
		a.bindings++
		if t.active {
			a.LiveSessions++
		}
		done.Added++
		s.release(c)
	}
	done.Sequence = s.sequence
	s.notify()
	return done, nil
}

func readExport(r io.Reader) ([]*bindingRow, error) {
	decoder := json.NewDecoder(io.LimitReader(r, maxExport))
	decoder.DisallowUnknownFields()
	var in export
	if err := decoder.Decode(&in); err != nil {
		return nil, err
	}
	if in.Format != exportFormat {
		return nil, invalid("export format")
	}
	seen := make(map[bindingID]bool, len(in.Bindings))
	rows := make([]*bindingRow, 0, len(in.Bindings))
	for _, b := range in.Bindings {
		row := &bindingRow{
			Session: b.Session, Model: b.Model, Account: b.Account,
			BoundAt: b.BoundAt.UTC(), LastUsed: b.LastUsed.UTC(), BoundBy: b.BoundBy, Cause: b.Cause,
		}
		if err := row.check(); err != nil {
			return nil, err
		}
		id := bindingID{row.Session, row.Model}
		if seen[id] {
			return nil, invalid("export: a session and model twice")
		}
		seen[id] = true
		rows = append(rows, row)
	}
	return rows, nil
}
