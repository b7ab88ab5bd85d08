package state

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// mustMeanTheSame compares what the scan takes with what encoding/json reads.
func mustMeanTheSame(t rapid.TB, data []byte) (taken bool) {
	t.Helper()
	scanned, taken := scanBinding(data, make(words))
	if !taken {
		return false
	}
	read, err := decodeRow[bindingRow](data)
	if err != nil {
		t.Fatalf("taken, and not JSON of a binding: %v\n%s", err, data)
	}
	if diff := cmp.Diff(read, scanned); diff != "" {
		t.Fatalf("read as another row:\n%s\n%s", diff, data)
	}
	return true
}

func marshalled(t rapid.TB, row *bindingRow) []byte {
	t.Helper()
	data, err := marshal(new(bytes.Buffer), row)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// anyBinding draws a row whose texts and numbers are of every kind.
func anyBinding(t *rapid.T) *bindingRow {
	text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,12}`), rapid.String())
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	})
	row := &bindingRow{
		Session: text.Draw(t, "session"), Model: text.Draw(t, "model"), Account: text.Draw(t, "account"),
		BoundAt: at.Draw(t, "bound at"), LastUsed: at.Draw(t, "last used"),
		BoundBy: BoundBy(text.Draw(t, "by")), Cause: text.Draw(t, "cause"), Cadence: rapid.Float64Range(-1e15, 1e15).Draw(t, "cadence"),
		BoundSequence: rapid.Uint64().Draw(t, "bound sequence"), Sequence: rapid.Uint64().Draw(t, "sequence"),
	}
	for range rapid.IntRange(0, maxMoves).Draw(t, "moves") {
		row.Moves = append(row.Moves, Move{From: text.Draw(t, "from"), To: text.Draw(t, "to"), At: at.Draw(t, "moved at"), By: BoundByFailover})
	}
	return row
}

func TestAScannedBindingIsWhatItsJSONSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := marshalled(t, anyBinding(t))
		mustMeanTheSame(t, data)
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		data[at] = rapid.SampledFrom([]byte(`"\,:{}[]01-.eE x`)).Draw(t, "byte")
		mustMeanTheSame(t, data)
	})
}

func TestAnAppendedBindingIsItsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := anyBinding(t)
		line, ok := appendBinding([]byte("before"), row)
		if want := "before" + string(marshalled(t, row)); ok && string(line) != want {
			t.Fatalf("written as\n%s, want\n%s", line, want)
		}
	})
}

func TestOrdinaryBindingsNeedNoEncodingJSON(t *testing.T) {
	row := bindingRow{
		Session: "claude/0a1b2c3d-1111-4222-8333-444455556666", Model: "claude-opus-4-1", Account: "work", BoundAt: start,
		LastUsed: start.Add(123456789), BoundBy: BoundByFailover, Cause: "quota", Cadence: 21.25, BoundSequence: 17, Sequence: 18,
	}
	initial := row
	initial.Model, initial.Cause, initial.Cadence, initial.BoundSequence, initial.BoundBy = "", "", 0, 0, BoundInitially
	for _, r := range []*bindingRow{&row, &initial} {
		if data := marshalled(t, r); !mustMeanTheSame(t, data) {
			t.Errorf("left to encoding/json: %s", data)
		}
		if _, ok := appendBinding(nil, r); !ok {
			t.Errorf("not appended: %+v", r)
		}
	}
}

func TestUnusualBindingsComeBackAllTheSame(t *testing.T) {
	for name, change := range map[string]func(r *bindingRow){
		"an escape":      func(r *bindingRow) { r.Session = `claude/"\` },
		"umlauts":        func(r *bindingRow) { r.Account = "büro" },
		"moves":          func(r *bindingRow) { r.Moves = []Move{{From: "a", To: "b", At: start, By: BoundByOperator}} },
		"a tiny cadence": func(r *bindingRow) { r.Cadence = 1e-9 },
	} {
		t.Run(name, func(t *testing.T) {
			row := &bindingRow{Session: "claude/s", Account: "a", BoundAt: start, LastUsed: start, BoundBy: BoundInitially}
			change(row)
			s := snapshotReader{words: make(words)}
			var body bytes.Buffer
			out := bufio.NewWriter(&body)
			lines := lineWriter{out: out}
			if err := errors.Join(lines.add(row), out.Flush()); err != nil {
				t.Fatal(err)
			}
			got, err := s.decodeBinding(bytes.TrimSpace(body.Bytes()))
			if diff := cmp.Diff(row, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestRowsThatAreReadShareTheirWords(t *testing.T) {
	known := make(words)
	for range 2 {
		if _, ok := scanBinding(marshalled(t, &bindingRow{Session: "claude/s", Model: "m", Account: "a", BoundBy: BoundInitially}), known); !ok {
			t.Fatal("not scanned")
		}
	}
	if want := []string{"", "a", "initial", "m"}; len(known) != len(want) {
		t.Errorf("%d words, want %s", len(known), strings.Join(want, ", "))
	}
}

// FuzzBinding: what the scan takes is JSON of a binding, and means the same to encoding/json.
func FuzzBinding(f *testing.F) {
	for _, e := range everything() {
		if row, ok := e.(*bindingRow); ok {
			f.Add(marshalled(f, row))
		}
	}
	f.Add([]byte(`{"session":"claude/s","account":"a","bound_at":"2026-03-02T08:00:00Z","last_used":"2026-03-02T08:00:00.5+02:00","by":"initial","cadence":0.5,"sequence":7}`))
	f.Fuzz(func(t *testing.T, data []byte) { mustMeanTheSame(t, data) })
}
