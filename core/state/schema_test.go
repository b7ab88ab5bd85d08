package state

import (
	"testing"

	"github.com/hashicorp/go-memdb"

	"github.com/noria-dev/noria/core/quota"
)

func TestSchemaIsValid(t *testing.T) {
	if err := schema().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestIndexKeysAreExact(t *testing.T) {
	work := quota.AccountID{Provider: "claude", Name: "work"}
	for name, c := range map[string]struct {
		table string
		row   any
		key   any
		want  string
	}{
		"accounts by provider and name": {tableAccounts, &accountRow{Account: work}, work, "claude\x00work\x00"},
		"bindings by session and model": {tableBindings,
			&bindingRow{Session: "claude/1", Model: "opus", Account: "work"}, bindingID{"claude/1", "opus"}, "claude/1\x00opus\x00"},
		"bindings without a model": {tableBindings, &bindingRow{Session: "claude/1"}, bindingID{session: "claude/1"}, "claude/1\x00\x00"},
		"blockers by account":      {tableBlockers, &blockersRow{Account: work}, work, "claude\x00work\x00"},
		"windows by account and id": {tableWindows,
			&windowRow{Account: work, Window: quota.Window{Declaration: quota.Declaration{ID: "5h"}}}, windowID{work, "5h"}, "claude\x00work\x005h\x00"},
		"learned by account":      {tableLearned, &learnedRow{Account: work}, work, "claude\x00work\x00"},
		"learned of all sessions": {tableLearned, &learnedRow{}, quota.AccountID{}, "\x00\x00"},
		"reservations by attempt": {tableReservations, &reservationRow{Attempt: 0x0102030405060708}, uint64(0x0102030405060708), "\x01\x02\x03\x04\x05\x06\x07\x08"},
	} {
		t.Run(name, func(t *testing.T) {
			index := schema().Tables[c.table].Indexes[indexID]
			if !index.Unique || index.AllowMissing {
				t.Error("the primary index is not unique and required")
			}
			ok, fromRow, err := index.Indexer.(memdb.SingleIndexer).FromObject(c.row)
			if err != nil || !ok || string(fromRow) != c.want {
				t.Errorf("key of the row = %q, %v, %v; want %q", fromRow, ok, err, c.want)
			}
			fromKey, err := index.Indexer.FromArgs(c.key)
			if err != nil || string(fromKey) != c.want {
				t.Errorf("key of the arguments = %q, %v; want %q", fromKey, err, c.want)
			}
		})
	}
	if n := len(schema().Tables); n != 6 {
		t.Errorf("%d tables: the keys of all must be listed here", n)
	}
}

func TestPrefixKeysAreExact(t *testing.T) {
	for name, c := range map[string]struct {
		table  string
		prefix any
		want   string
	}{
		"all bindings of a session": {tableBindings, sessionPrefix("claude/1"), "claude/1\x00"},
		"all windows of an account": {tableWindows, accountPrefix{Provider: "claude", Name: "work"}, "claude\x00work\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := schema().Tables[c.table].Indexes[indexID].Indexer.(memdb.PrefixIndexer).PrefixFromArgs(c.prefix)
			if err != nil || string(got) != c.want {
				t.Errorf("prefix = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestIndexersRefuseOtherTypes(t *testing.T) {
	index := schema().Tables[tableBindings].Indexes[indexID].Indexer
	if _, _, err := index.(memdb.SingleIndexer).FromObject(&accountRow{}); err == nil {
		t.Error("a row of another table was indexed")
	}
	for _, args := range [][]any{{}, {"claude/1"}, {bindingID{}, bindingID{}}} {
		if _, err := index.FromArgs(args...); err == nil {
			t.Errorf("arguments %v were indexed", args)
		}
	}
	if _, err := index.(memdb.PrefixIndexer).PrefixFromArgs("claude/1"); err == nil {
		t.Error("a prefix of another type was indexed")
	}
}
