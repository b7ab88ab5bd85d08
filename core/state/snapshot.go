package state

import (
	"bufio"
	"bytes"
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
// with one table and one row a line. It holds every entry up to the sequence.
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
		lines := lineWriter{out: out}
		for raw := rows.Next(); raw != nil; raw = rows.Next() {
			if err := lines.add(raw); err != nil {
				return fmt.Errorf("encode row of %s: %w", name, err)
			}
		}
		out.WriteString("]")
	}
	out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// lineWriter writes the elements of a JSON array, one a line.
type lineWriter struct {
	out    *bufio.Writer
	line   []byte
	buffer bytes.Buffer
	lines  int
}

func (l *lineWriter) add(element any) error {
	line, err := l.encode(element)
	if err != nil {
		return err
	}
	if l.lines++; l.lines > 1 {
		l.out.WriteString(",")
	}
	l.out.WriteString("\n")
	l.out.Write(line)
	return nil
}

func (l *lineWriter) encode(element any) ([]byte, error) {
	if row, ok := element.(*bindingRow); ok {
		if l.line, ok = appendBinding(l.line[:0], row); ok {
			return l.line, nil
		}
	}
	return marshal(&l.buffer, element)
}

// readSnapshot fills an empty store from what writeSnapshot wrote, or refuses it as a whole.
func readSnapshot(body []byte) (*memdb.MemDB, uint64, error) {
	db, err := newDB()
	if err != nil {
		return nil, 0, err
	}
	txn := db.Txn(true)
	defer txn.Abort()
	s := snapshotReader{rest: body, txn: txn, words: make(words)}
	if err := s.read(); err != nil {
		return nil, 0, fmt.Errorf("read snapshot: %w", err)
	}
	txn.Commit()
	return db, s.sequence, nil
}

// snapshotReader takes a snapshot apart at its lines.
type snapshotReader struct {
	rest     []byte
	txn      *memdb.Txn
	sequence uint64
	words    words
}

func (s *snapshotReader) read() error {
	if err := s.header(); err != nil {
		return err
	}
	tables := durableTables()
	for i, name := range tables {
		closing := "],"
		if i == len(tables)-1 {
			closing = "]}"
		}
		if err := s.table(name, closing); err != nil {
			return err
		}
	}
	if len(s.rest) > 0 {
		return invalid("snapshot: more than one document")
	}
	return nil
}

func (s *snapshotReader) line() ([]byte, error) {
	line, rest, ok := bytes.Cut(s.rest, []byte("\n"))
	if !ok {
		return nil, invalid("snapshot: no end")
	}
	s.rest = rest
	return line, nil
}

func (s *snapshotReader) header() error {
	line, err := s.line()
	if err != nil {
		return err
	}
	fields := scan{rest: line}
	format := fields.number(`{"format":`)
	if format > snapshotFormat {
		return fmt.Errorf("format %d is newer than this release knows: %w", format, errors.ErrUnsupported)
	}
	if format != snapshotFormat {
		return invalid("snapshot format")
	}
	s.sequence = fields.number(`,"sequence":`)
	if fields.failed || string(fields.rest) != "," {
		return invalid("snapshot: not the expected shape")
	}
	return nil
}

// table reads a table up to the closing behind its last row.
func (s *snapshotReader) table(name, closing string) error {
	line, err := s.line()
	if err != nil {
		return err
	}
	opening := fmt.Sprintf("%q:[", name)
	switch {
	case string(line) == opening+closing:
		return nil
	case string(line) != opening:
		return invalid("snapshot: not the expected shape")
	}
	switch name {
	case tableAccounts:
		return readRows(s, name, closing, decodeRow[accountRow])
	case tableBindings:
		return readRows(s, name, closing, s.decodeBinding)
	case tableBlockers:
		return readRows(s, name, closing, decodeRow[blockersRow])
	case tableWindows:
		return readRows(s, name, closing, decodeRow[windowRow])
	default:
		return readRows(s, name, closing, decodeRow[learnedRow])
	}
}

// rows reads lines up to one with the closing behind it.
func (s *snapshotReader) rows(closing string, take func(row []byte) error) error {
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		row, last := bytes.CutSuffix(line, []byte(closing))
		if !last {
			var more bool
			if row, more = bytes.CutSuffix(line, []byte(",")); !more {
				return invalid("snapshot: not the expected shape")
			}
		}
		if err := take(row); err != nil || last {
			return err
		}
	}
}

func (s *snapshotReader) decodeBinding(data []byte) (*bindingRow, error) {
	if row, ok := scanBinding(data, s.words); ok {
		return row, nil
	}
	return decodeRow[bindingRow](data)
}

func decodeRow[Row any](data []byte) (*Row, error) {
	row := new(Row)
	return row, decodeStrictly(data, row)
}

type checked interface{ check() error }

// readRows reads rows and inserts them. Both cost about the same, so they go side by side.
func readRows[Row checked](s *snapshotReader, table, closing string, decode func([]byte) (Row, error)) error {
	batches := batches[Row]{full: make(chan []Row, 2)}
	reading := make(chan error, 1)
	go func() {
		defer close(batches.full)
		reading <- s.rows(closing, func(data []byte) error {
			row, err := decode(data)
			if err == nil {
				err = row.check()
			}
			batches.add(row)
			return err
		})
		batches.flush()
	}()
	rows, err := insertAll(s.txn, table, batches.full)
	if err := errors.Join(<-reading, err); err != nil {
		return fmt.Errorf("rows of %s: %w", table, err)
	}
	if n, err := count(s.txn, table); err != nil {
		return err
	} else if n != rows {
		return invalid("snapshot: a row twice")
	}
	return nil
}

// insertAll inserts what comes, and takes the rest when one row cannot be inserted.
func insertAll[Row any](txn *memdb.Txn, table string, batches <-chan []Row) (rows int, err error) {
	for batch := range batches {
		for _, row := range batch {
			if err == nil {
				err = txn.Insert(table, row)
			}
		}
		rows += len(batch)
	}
	return rows, err
}

// rowBatch is how many rows are handed over at once.
const rowBatch = 512

type batches[Row any] struct {
	full chan []Row
	next []Row
}

func (b *batches[Row]) add(row Row) {
	b.next = append(b.next, row)
	if len(b.next) == rowBatch {
		b.flush()
	}
}

func (b *batches[Row]) flush() {
	b.full <- b.next
	b.next = make([]Row, 0, rowBatch)
}

func count(txn *memdb.Txn, table string) (int, error) {
	n := 0
	err := all(txn, table, func(any) bool { n++; return true })
	return n, err
}
