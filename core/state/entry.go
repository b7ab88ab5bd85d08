package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/noria-dev/noria/core/quota"
)

// Types of entries.
const (
	typeAccount  = "account"
	typeBinding  = "binding"
	typeUnbind   = "unbind"
	typeBlockers = "blockers"
	typeClocks   = "clocks"
	typeDemand   = "demand"
)

// entry is one durable fact. apply writes it into a transaction; it reads no clock, and an entry at or below the sequence
// of the row that it would write changes nothing.
type entry interface {
	entryType() string
	check() error
	apply(c change, sequence uint64) error
}

// change is a write transaction, with what was there when it began. That is what an entry is compared with: sequences
// ascend within a transaction, so no row that it wrote can be newer, and to read one back would make memdb copy its nodes.
type change struct {
	*memdb.Txn
	before *memdb.Txn
}

func newChange(db *memdb.MemDB) change { return change{Txn: db.Txn(true), before: db.Txn(false)} }

// unbind drops a binding: idle too long, one too many, or forgotten by the operator.
type unbind struct {
	Session string `json:"session"`
	Model   string `json:"model,omitempty"`
	Cause   string `json:"cause"`
}

// clocks are windows of an account, and the counts that their stamps refer to: they are only right together. More follows
// on an entry that held other windows of the account, since an entry has a greatest length.
type clocks struct {
	Account   quota.AccountID `json:"account"`
	Windows   []quota.Window  `json:"windows"`
	Completed quota.Counts    `json:"completed,omitempty"`
	More      bool            `json:"more,omitempty"`
}

// clocksPerEntry windows fit into one entry, whatever they hold within their bounds.
const clocksPerEntry = 2

// clocksOf are the entries that hold all windows of an account.
func clocksOf(a *quota.Account) []entry {
	completed := a.Completed.Clone()
	entries := []entry{}
	for windows := range slices.Chunk(slices.Clone(a.Windows), clocksPerEntry) {
		entries = append(entries, &clocks{Account: a.ID, Windows: windows, Completed: completed, More: len(entries) > 0})
	}
	if len(entries) == 0 {
		entries = append(entries, &clocks{Account: a.ID, Completed: completed})
	}
	return entries
}

// demand is what is learned of all sessions.
type demand struct {
	Demand quota.Demand `json:"demand"`
}

func (*accountRow) entryType() string  { return typeAccount }
func (*bindingRow) entryType() string  { return typeBinding }
func (*unbind) entryType() string      { return typeUnbind }
func (*blockersRow) entryType() string { return typeBlockers }
func (*clocks) entryType() string      { return typeClocks }
func (*demand) entryType() string      { return typeDemand }

// envelope is an entry as the log keeps it.
type envelope struct {
	Type string `json:"type"`
	Body any    `json:"body"`
}

func encode(e entry) ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("encode %s entry: %w", e.entryType(), err)
	}
	line, err := marshal(new(bytes.Buffer), envelope{Type: e.entryType(), Body: e})
	if err != nil {
		return nil, fmt.Errorf("encode %s entry: %w", e.entryType(), err)
	}
	return line, nil
}

// decode reads an entry, in exactly the form that encode gives it. A type that is not known was written by a newer release:
// errors.ErrUnsupported.
func decode(data []byte, known words) (entry, error) {
	name, body, ok := unwrap(data)
	if !ok {
		return nil, fmt.Errorf("decode entry: %w", ErrInvalid)
	}
	e, err := decodeBody(name, body, known)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s entry: %w", name, err)
	}
	return e, nil
}

func decodeBody(name string, body []byte, known words) (entry, error) {
	var e entry
	switch name {
	case typeAccount:
		e = new(accountRow)
	case typeBinding:
		if row, ok := scanBinding(body, known); ok {
			return row, nil
		}
		e = new(bindingRow)
	case typeUnbind:
		e = new(unbind)
	case typeBlockers:
		e = new(blockersRow)
	case typeClocks:
		e = new(clocks)
	case typeDemand:
		e = new(demand)
	default:
		return nil, fmt.Errorf("a newer release knows this type: %w", errors.ErrUnsupported)
	}
	return e, json.Unmarshal(body, e)
}

// unwrap takes an entry apart without a second look at its body.
func unwrap(data []byte) (name string, body []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	if !ok {
		return "", nil, false
	}
	word, body, ok := bytes.Cut(rest, []byte(`","body":`))
	if !ok || len(word) == 0 || !bytes.HasSuffix(body, []byte("}")) || bytes.ContainsAny(word, "\"\\") {
		return "", nil, false
	}
	return string(word), body[:len(body)-1], true
}

func (r *accountRow) apply(c change, sequence uint64) error {
	return upsert(c, tableAccounts, r.Account, r, sequence)
}

func (r *bindingRow) apply(c change, sequence uint64) error {
	return upsert(c, tableBindings, bindingID{r.Session, r.Model}, r, sequence)
}

func (r *blockersRow) apply(c change, sequence uint64) error {
	return upsert(c, tableBlockers, r.Account, r, sequence)
}

func (u *unbind) check() error {
	return cmp.Or(checkText("session", u.Session, maxName+1+maxIdentity), checkText("model", u.Model, maxName), checkText("cause", u.Cause, maxCode))
}

func (u *unbind) apply(c change, sequence uint64) error {
	old, err := first[*bindingRow](c.before, tableBindings, bindingID{u.Session, u.Model})
	if err != nil || (old != nil && old.Sequence >= sequence) {
		return err
	}
	if err := c.Delete(tableBindings, &bindingRow{Session: u.Session, Model: u.Model}); err != nil && !errors.Is(err, memdb.ErrNotFound) {
		return fmt.Errorf("delete binding: %w", err)
	}
	return nil
}

func (c *clocks) check() error {
	if err := cmp.Or(checkAccount(c.Account), checkCounts(c.Completed)); err != nil {
		return err
	}
	for i := range c.Windows {
		if err := checkWindow(&c.Windows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *clocks) apply(txn change, sequence uint64) error {
	learned, err := first[*learnedRow](txn.before, tableLearned, c.Account)
	if err != nil || (learned != nil && learned.Sequence >= sequence) {
		return err
	}
	if !c.More {
		if _, err := txn.DeleteAll(tableWindows, indexPrefix, accountPrefix(c.Account)); err != nil {
			return fmt.Errorf("replace windows: %w", err)
		}
	}
	for i := range c.Windows {
		if err := txn.Insert(tableWindows, &windowRow{Account: c.Account, Window: c.Windows[i], Sequence: sequence}); err != nil {
			return fmt.Errorf("insert window: %w", err)
		}
	}
	return txn.Insert(tableLearned, &learnedRow{Account: c.Account, Completed: c.Completed, Sequence: sequence})
}

func (d *demand) check() error {
	return checkFinite("demand", d.Demand.Events, d.Demand.Hours, d.Demand.Ended)
}

func (d *demand) apply(c change, sequence uint64) error {
	return upsert(c, tableLearned, quota.AccountID{}, &learnedRow{Demand: d.Demand}, sequence)
}

// upsert writes a copy of the row with that sequence, unless the table holds one of the same key that is as new.
func upsert[Row sequenced[Row]](c change, table string, key any, row Row, sequence uint64) error {
	raw, err := c.before.First(table, indexID, key)
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	if raw != nil && raw.(Row).sequence() >= sequence {
		return nil
	}
	if err := c.Insert(table, row.withSequence(sequence)); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

// first reads one row, nil without one.
func first[Row any](txn *memdb.Txn, table string, key any) (row Row, err error) {
	raw, err := txn.First(table, indexID, key)
	if err != nil {
		return row, fmt.Errorf("read %s: %w", table, err)
	}
	if raw != nil {
		row = raw.(Row)
	}
	return row, nil
}

// all reads a whole table in the order of its keys.
func all[Row any](txn *memdb.Txn, table string, yield func(Row) bool) error {
	rows, err := txn.Get(table, indexID)
	if err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	for raw := rows.Next(); raw != nil; raw = rows.Next() {
		if !yield(raw.(Row)) {
			return nil
		}
	}
	return nil
}
