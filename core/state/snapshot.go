package state

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-memdb"
)

// snapshotFormat is the version of snapshot bodies:
//
//	{"format":1,"sequence":N,
//	"accounts":[rows],"bindings":[rows],"blockers":[rows],"windows":[rows],"learned":[rows]}
//
// with one row a line. It holds every entry up to the sequence.
const snapshotFormat = 1

// durableTables in the order in which a snapshot holds them.
func durableTables() []string {
	return []string{tableAccounts, tableBindings, tableBlockers, tableWindows, tableLearned}
}

// writeSnapshot writes the durable tables of a read transaction.
func writeSnapshot(w io.Writer, txn *memdb.Txn, sequence uint64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(out, `{"format":%d,"sequence":%d`, snapshotFormat, sequence)
	for _, name := range durableTables() {
		fmt.Fprintf(out, ",\n%q:[", name)
		rows, err := txn.Get(name, indexID)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		separator := "\n"
		for raw := rows.Next(); raw != nil; raw = rows.Next() {
			line, err := json.Marshal(raw)
			if err != nil {
				return fmt.Errorf("encode row of %s: %w", name, err)
			}
			out.WriteString(separator)
			out.Write(line)
			separator = ",\n"
		}
		out.WriteString("]")
	}
	out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// readSnapshot fills an empty store from what writeSnapshot wrote, or refuses it as a whole.
func readSnapshot(r io.Reader) (*memdb.MemDB, uint64, error) {
	db, err := newDB()
	if err != nil {
		return nil, 0, err
	}
	txn := db.Txn(true)
	defer txn.Abort()
	reader := snapshotReader{json: json.NewDecoder(r), txn: txn, seen: make(map[string]bool), words: make(words)}
	reader.json.DisallowUnknownFields()
	if err := reader.read(); err != nil {
		return nil, 0, fmt.Errorf("read snapshot: %w", err)
	}
	txn.Commit()
	return db, reader.sequence, nil
}

type snapshotReader struct {
	json     *json.Decoder
	txn      *memdb.Txn
	sequence uint64
	seen     map[string]bool
	words    words
}

func (s *snapshotReader) read() error {
	if err := s.delimiter('{'); err != nil {
		return err
	}
	for s.json.More() {
		token, err := s.json.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if s.seen[name] {
			return invalid("snapshot: a name twice")
		}
		s.seen[name] = true
		if err := s.field(name); err != nil {
			return err
		}
	}
	if err := s.delimiter('}'); err != nil {
		return err
	}
	if !s.seen["format"] {
		return invalid("snapshot: no format")
	}
	if _, err := s.json.Token(); !errors.Is(err, io.EOF) {
		return invalid("snapshot: more than one document")
	}
	return nil
}

func (s *snapshotReader) field(name string) error {
	switch name {
	case "format":
		var format int
		if err := s.json.Decode(&format); err != nil {
			return err
		}
		if format > snapshotFormat {
			return fmt.Errorf("format %d is newer than this release knows: %w", format, errors.ErrUnsupported)
		}
		if format != snapshotFormat {
			return invalid("snapshot format")
		}
		return nil
	case "sequence":
		return s.json.Decode(&s.sequence)
	case tableAccounts:
		return readRows(s, name, (*accountRow).check)
	case tableBindings:
		return readRows(s, name, (*bindingRow).check)
	case tableBlockers:
		return readRows(s, name, (*blockersRow).check)
	case tableWindows:
		return readRows(s, name, (*windowRow).check)
	case tableLearned:
		return readRows(s, name, (*learnedRow).check)
	}
	return invalid("snapshot: unknown table")
}

func (s *snapshotReader) delimiter(want json.Delim) error {
	token, err := s.json.Token()
	if err != nil {
		return err
	}
	if token != want {
		return invalid("snapshot: not the expected shape")
	}
	return nil
}

// rowBatch is how many rows are handed from reading to inserting at once.
const rowBatch = 512

// readRows reads an array of rows. Reading and inserting cost about the same, so they go side by side.
func readRows[Row any](s *snapshotReader, table string, check func(*Row) error) error {
	if err := s.delimiter('['); err != nil {
		return err
	}
	batches := make(chan []*Row, 2)
	read := make(chan error, 1)
	go func() {
		defer close(batches)
		read <- decodeRows(s, table, check, batches)
	}()
	rows := 0
	var inserting error
	for batch := range batches {
		for _, row := range batch {
			if inserting == nil {
				inserting = s.txn.Insert(table, row)
			}
		}
		rows += len(batch)
	}
	if err := errors.Join(<-read, inserting); err != nil {
		return err
	}
	if n, err := count(s.txn, table); err != nil {
		return err
	} else if n != rows {
		return invalid("snapshot: a row twice")
	}
	return s.delimiter(']')
}

func decodeRows[Row any](s *snapshotReader, table string, check func(*Row) error, batches chan<- []*Row) error {
	batch := make([]*Row, 0, rowBatch)
	for s.json.More() {
		row := new(Row)
		if err := s.json.Decode(row); err != nil {
			return err
		}
		if err := check(row); err != nil {
			return fmt.Errorf("row of %s: %w", table, err)
		}
		s.words.share(row)
		if batch = append(batch, row); len(batch) == rowBatch {
			batches <- batch
			batch = make([]*Row, 0, rowBatch)
		}
	}
	batches <- batch
	return nil
}

func count(txn *memdb.Txn, table string) (int, error) {
	rows, err := txn.Get(table, indexID)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", table, err)
	}
	n := 0
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		n++
	}
	return n, nil
}
