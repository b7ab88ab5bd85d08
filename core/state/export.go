package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-memdb"
)

// exportFormat is the version of exported bindings:
//
//	{"format":1,"exported_at":"TIME","bindings":[
//	BINDING,
//	BINDING]}
const exportFormat = 1

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
	if err == nil || errors.Is(err, ErrClosed) {
		err = writeExport(w, txn, at.UTC())
	}
	if err != nil {
		return fmt.Errorf("export bindings: %w", err)
	}
	return nil
}

func writeExport(w io.Writer, txn *memdb.Txn, at time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"format":%d,"exported_at":%q,"bindings":[`, exportFormat, at.Format(time.RFC3339Nano))
	lines := lineWriter{out: out}
	var failed error
	err := all(txn, tableBindings, func(r *bindingRow) bool {
		failed = lines.add(exportedBinding{r.Session, r.Model, r.Account, r.BoundAt, r.LastUsed, r.BoundBy, r.Cause})
		return failed == nil
	})
	out.WriteString("]}\n")
	return errors.Join(err, failed, out.Flush())
}
