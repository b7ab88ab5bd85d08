package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/noria-dev/noria/core/quota"
)

// Tables.
const (
	tableAccounts     = "accounts"
	tableBindings     = "bindings"
	tableBlockers     = "blockers"
	tableWindows      = "windows"
	tableLearned      = "learned"
	tableReservations = "reservations"
)

const (
	indexID     = "id"
	indexPrefix = "id_prefix"
)

// schema lists every table. Bindings have no index by account: counts are kept instead, since a second index nearly
// doubles memory and loading time.
func schema() *memdb.DBSchema {
	tables := []*memdb.TableSchema{
		table(tableAccounts, keyed[*accountRow, quota.AccountID]{
			ofRow: func(r *accountRow) quota.AccountID { return r.Account }, key: accountKey}),
		table(tableBindings, keyed[*bindingRow, bindingID]{
			ofRow: func(r *bindingRow) bindingID { return bindingID{r.Session, r.Model} }, key: bindingID.key}),
		table(tableBlockers, keyed[*blockersRow, quota.AccountID]{
			ofRow: func(r *blockersRow) quota.AccountID { return r.Account }, key: accountKey}),
		table(tableWindows, keyed[*windowRow, windowID]{
			ofRow: func(r *windowRow) windowID { return windowID{r.Account, r.Window.ID} }, key: windowID.key}),
		table(tableLearned, keyed[*learnedRow, quota.AccountID]{
			ofRow: func(r *learnedRow) quota.AccountID { return r.Account }, key: accountKey}),
		table(tableReservations, keyed[*reservationRow, uint64]{
			ofRow: func(r *reservationRow) uint64 { return r.Attempt }, key: attemptKey}),
	}
	s := &memdb.DBSchema{Tables: make(map[string]*memdb.TableSchema, len(tables))}
	for _, t := range tables {
		s.Tables[t.Name] = t
	}
	return s
}

// newDB makes an empty database.
func newDB() (*memdb.MemDB, error) {
	db, err := memdb.NewMemDB(schema())
	if err != nil {
		return nil, fmt.Errorf("make store: %w", err)
	}
	// A snapshot of it is as good, and does not note every node that changes for watches that nobody sets.
	return db.Snapshot(), nil
}

func table(name string, id memdb.Indexer) *memdb.TableSchema {
	return &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{
		indexID: {Name: indexID, Unique: true, Indexer: id},
	}}
}

// bindingID is the primary key of a binding.
type bindingID struct{ session, model string }

// windowID is the primary key of a window.
type windowID struct {
	account quota.AccountID
	window  string
}

// sessionPrefix asks for all bindings of a session, accountPrefix for all rows of an account.
type (
	sessionPrefix string
	accountPrefix quota.AccountID
)

// Keys end every text with a zero byte, so that no key is the beginning of another. Texts hold no zero byte: they are
// checked before they get here.
func appendText(key []byte, texts ...string) []byte {
	for _, t := range texts {
		key = append(append(key, t...), 0)
	}
	return key
}

func accountKey(id quota.AccountID) []byte { return appendText(nil, id.Provider, id.Name) }

func (id bindingID) key() []byte {
	return appendText(make([]byte, 0, len(id.session)+len(id.model)+2), id.session, id.model)
}

func (id windowID) key() []byte { return appendText(accountKey(id.account), id.window) }

func attemptKey(attempt uint64) []byte { return binary.BigEndian.AppendUint64(nil, attempt) }

// keyed indexes rows of one type by keys of one type, without reflection.
type keyed[Row, Key any] struct {
	ofRow func(Row) Key
	key   func(Key) []byte
}

var errWrongType = errors.New("wrong type")

// FromObject implements memdb.SingleIndexer.
func (k keyed[Row, Key]) FromObject(raw any) (bool, []byte, error) {
	row, ok := raw.(Row)
	if !ok {
		return false, nil, fmt.Errorf("index row of type %T: %w", raw, errWrongType)
	}
	return true, k.key(k.ofRow(row)), nil
}

// FromArgs implements memdb.Indexer.
func (k keyed[Row, Key]) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("look up with %d keys: %w", len(args), errWrongType)
	}
	key, ok := args[0].(Key)
	if !ok {
		return nil, fmt.Errorf("look up with key of type %T: %w", args[0], errWrongType)
	}
	return k.key(key), nil
}

// PrefixFromArgs implements memdb.PrefixIndexer.
func (k keyed[Row, Key]) PrefixFromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		switch prefix := args[0].(type) {
		case sessionPrefix:
			return appendText(nil, string(prefix)), nil
		case accountPrefix:
			return accountKey(quota.AccountID(prefix)), nil
		}
	}
	return nil, fmt.Errorf("look up by prefix %v: %w", args, errWrongType)
}
