package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-memdb"
	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/quota"
)

// anyEntry draws one entry over few keys, so that entries meet.
func anyEntry(t *rapid.T) entry {
	account := id(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "account"))
	at := start.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "at")) * time.Second)
	session := rapid.SampledFrom([]string{"claude/1", "claude/2", "claude/12"}).Draw(t, "session")
	model := rapid.SampledFrom([]string{"", "m", "n"}).Draw(t, "model")
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		return &accountRow{Account: account, SwitchedOff: rapid.Bool().Draw(t, "off")}
	case 1:
		return &bindingRow{Session: session, Model: model, Account: account.Name, BoundAt: at, LastUsed: at, BoundBy: BoundInitially, Cadence: 3}
	case 2:
		return &unbind{Session: session, Model: model, Cause: "idle"}
	case 3:
		row := &blockersRow{Account: account}
		for i := range rapid.IntRange(0, 2).Draw(t, "blockers") {
			row.Blockers = append(row.Blockers, quota.Blocker{Cause: quota.CauseQuota, Window: fmt.Sprint(i), ObservedAt: at})
		}
		return row
	case 4:
		c := &clocks{Account: account, Completed: quota.Counts{{Model: "m", Count: 7}}}
		for _, w := range []string{"5h", "weekly"}[:rapid.IntRange(0, 2).Draw(t, "windows")] {
			c.Windows = append(c.Windows, quota.Window{
				Declaration: quota.Declaration{ID: w, Length: fiveHours}, Evidence: quota.EvidenceObserved,
				EstimatePercent: rapid.Float64Range(0, 100).Draw(t, "percent"), TakenAt: at,
			})
		}
		return c
	}
	return &demand{Demand: quota.Demand{Events: rapid.Float64Range(0, 100).Draw(t, "events")}}
}

// dump is the durable state as text.
func dump(t rapid.TB, db *memdb.MemDB) string {
	var b bytes.Buffer
	if err := writeSnapshot(&b, db.Txn(false), 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func empty(t rapid.TB) *memdb.MemDB {
	db, err := newDB()
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// apply decodes and applies entries, the first with that sequence.
func apply(t rapid.TB, db *memdb.MemDB, first uint64, entries [][]byte) {
	for i, data := range entries {
		e, err := decode(data, make(words))
		if err != nil {
			t.Fatal(err)
		}
		txn := newChange(db)
		if err := e.apply(txn, first+uint64(i)); err != nil {
			t.Fatal(err)
		}
		txn.Commit()
	}
}

func TestAnyPrefixAfterAnySnapshotGivesTheSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries [][]byte
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			data, err := encode(anyEntry(t))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, data)
		}
		cut := rapid.IntRange(0, len(entries)).Draw(t, "snapshot")
		from := rapid.IntRange(0, cut).Draw(t, "replay from")
		end := rapid.IntRange(from, len(entries)).Draw(t, "end")

		straight := empty(t)
		apply(t, straight, 1, entries[:max(cut, end)])
		want := dump(t, straight)

		half := empty(t)
		apply(t, half, 1, entries[:cut])
		var body bytes.Buffer
		if err := writeSnapshot(&body, half.Txn(false), uint64(cut)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			log := &scripted{snapshot: body.Bytes(), first: uint64(from) + 1, entries: entries[from:end]}
			s, err := Open(log, Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, dump(t, s.db)); diff != "" {
				t.Fatalf("snapshot %d, replay %d to %d:\n%s", cut, from, end, diff)
			}
		}
		apply(t, straight, 1, entries[:max(cut, end)])
		if diff := cmp.Diff(want, dump(t, straight)); diff != "" {
			t.Fatalf("replayed twice:\n%s", diff)
		}
	})
}

func TestAnOlderEntryReplacesNoNewerRow(t *testing.T) {
	binding := func(account string) *bindingRow {
		return &bindingRow{Session: "claude/s", Account: account, BoundAt: start, LastUsed: start, BoundBy: BoundInitially}
	}
	for name, c := range map[string]struct{ newer, older entry }{
		"account":  {&accountRow{Account: id("a"), SwitchedOff: true}, &accountRow{Account: id("a")}},
		"binding":  {binding("a"), binding("b")},
		"unbind":   {binding("a"), &unbind{Session: "claude/s", Cause: "idle"}},
		"blockers": {&blockersRow{Account: id("a"), Blockers: []quota.Blocker{{Cause: quota.CauseAuth}}}, &blockersRow{Account: id("a")}},
		"clocks":   {&clocks{Account: id("a"), Windows: []quota.Window{{Declaration: quota.Declaration{ID: "5h"}}}}, &clocks{Account: id("a")}},
		"demand":   {&demand{Demand: quota.Demand{Events: 5}}, &demand{}},
	} {
		t.Run(name, func(t *testing.T) {
			db := empty(t)
			put := func(e entry, sequence uint64) {
				data, err := encode(e)
				if err != nil {
					t.Fatal(err)
				}
				apply(t, db, sequence, [][]byte{data})
			}
			put(c.newer, 7)
			want := dump(t, db)
			put(c.older, 6)
			put(c.older, 7)
			if diff := cmp.Diff(want, dump(t, db)); diff != "" {
				t.Errorf("the newer row is gone:\n%s", diff)
			}
			put(c.older, 8)
			if dump(t, db) == want {
				t.Error("a newer entry changed nothing")
			}
		})
	}
}

// scripted is a log that holds what it is given.
type scripted struct {
	*MemoryLog
	snapshot []byte
	first    uint64
	entries  [][]byte
	refused  []uint64
}

func (l *scripted) Recover(restore func(uint64, []byte) error, apply func(uint64, []byte) error) error {
	if l.MemoryLog == nil {
		l.MemoryLog = NewMemoryLog(false)
	}
	if l.snapshot != nil {
		if err := restore(0, l.snapshot); err != nil {
			return err
		}
	}
	for i, e := range l.entries {
		switch err := apply(l.first+uint64(i), e); {
		case errors.Is(err, errors.ErrUnsupported):
			return err
		case err != nil:
			l.refused = append(l.refused, l.first+uint64(i))
		}
	}
	return nil
}

func TestReopenedStoreGoesOnWhereItWas(t *testing.T) {
	f := open(t, "a", "b")
	for i := range 20 {
		attempt, _ := f.ask(fmt.Sprint("claude/", i), "m")
		f.accept(attempt)
		f.end(attempt)
		if i == 10 {
			f.must(f.Snapshot())
		}
	}
	f.reject(f.try("a", "claude/0", "m"), weekGone)
	f.pass(2 * time.Minute)
	want := dump(t, f.db)
	f.must(f.Close())
	f.recover()
	if diff := cmp.Diff(want, dump(t, f.db)); diff != "" {
		t.Errorf("state differs:\n%s", diff)
	}
}

func TestBadEntriesAreSkippedAndNewerOnesStopTheStart(t *testing.T) {
	good, err := encode(&bindingRow{Session: "claude/s", Model: "m", Account: "a", BoundAt: start, LastUsed: start, BoundBy: BoundInitially})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		entry  string
		newer  bool
		refuse bool
	}{
		"not JSON":                      {entry: "{", refuse: true},
		"no type":                       {entry: `{"body":{}}`, refuse: true},
		"a word more":                   {entry: `{"type":"unbind","body":{"session":"claude/x","cause":"idle"},"later":1}`, refuse: true},
		"a body of another shape":       {entry: `{"type":"binding","body":[]}`, refuse: true},
		"a binding without a session":   {entry: `{"type":"binding","body":{"account":"a","by":"initial"}}`, refuse: true},
		"a number that is none":         {entry: `{"type":"demand","body":{"demand":{"events":1e400}}}`, refuse: true},
		"a number beyond all bounds":    {entry: `{"type":"demand","body":{"demand":{"events":1e300}}}`, refuse: true},
		"a year that cannot be written": {entry: `{"type":"binding","body":{"session":"claude/x","account":"a","by":"initial","bound_at":"10000-01-01T00:00:00Z"}}`, refuse: true},
		"a cause that is not known":     {entry: `{"type":"blockers","body":{"account":{"provider":"claude","name":"a"},"blockers":[{"cause":"mood"}]}}`, refuse: true},
		"a type that is not known":      {entry: `{"type":"lease","body":{}}`, newer: true},
		"a field that is not known":     {entry: `{"type":"unbind","body":{"session":"claude/x","cause":"idle","later":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			log := &scripted{first: 1, entries: [][]byte{[]byte(c.entry), good}}
			s, err := Open(log, Settings{})
			if c.newer {
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("error = %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (len(log.refused) == 1) != c.refuse {
				t.Errorf("refused %v", log.refused)
			}
			if _, ok := s.Session("claude/s"); !ok {
				t.Error("the good entry is lost")
			}
		})
	}
}

func TestSnapshotsAreRefusedAsAWhole(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(time.Second)
	var good bytes.Buffer
	f.must(writeSnapshot(&good, f.db.Txn(false), f.sequence))
	body := good.String()
	replace := func(old, new string) string {
		if !bytes.Contains(good.Bytes(), []byte(old)) {
			t.Fatalf("the snapshot holds no %s:\n%s", old, body)
		}
		return string(bytes.Replace(good.Bytes(), []byte(old), []byte(new), 1))
	}
	for name, c := range map[string]struct {
		body  string
		newer bool
		good  bool
	}{
		"as it was written":           {body: body, good: true},
		"nothing":                     {body: ""},
		"zeros":                       {body: string(make([]byte, 4096))},
		"the half of it":              {body: body[:len(body)/2]},
		"twice":                       {body: body + body},
		"a byte order mark":           {body: "\ufeff" + body},
		"a newer format":              {body: replace(`"format":1`, `"format":99`), newer: true},
		"an older format":             {body: replace(`"format":1`, `"format":0`)},
		"no format":                   {body: replace(`"format":1,`, ``)},
		"a table twice":               {body: replace(`"learned":`, `"windows":`)},
		"a table that is not known":   {body: replace(`"learned":`, `"leases":`)},
		"a field that is not known":   {body: replace(`"session":"claude/s"`, `"session":"claude/s","token":"x"`)},
		"a field more at the end":     {body: replace(`"cadence":`, `"token":"x","cadence":`)},
		"two rows in one":             {body: replace(`"by":"initial"`, `"by":"initial"}{"by":"initial"`)},
		"a row that is no object":     {body: replace(`{"session":"claude/s"`, `[{"session":"claude/s"`)},
		"a row cut short":             {body: replace(`"cadence":21`, `"cadence":`)},
		"white space between":         {body: replace(`,"sequence":`, `, "sequence":`)},
		"a table missing":             {body: replace("\"blockers\":[],\n", "")},
		"no end":                      {body: strings.TrimSuffix(body, "}\n")},
		"a line break in an identity": {body: replace(`"claude/s"`, `"claude/\n"`)},
		"an escape in an identity":    {body: replace(`"claude/s"`, `"claude/\u001b[2J"`)},
		"a bidi mark in an identity":  {body: replace(`"claude/s"`, `"claude/\u202e"`)},
		"a lone surrogate":            {body: replace(`"claude/s"`, `"claude/\ud800"`)},
		"invalid UTF-8":               {body: replace(`"claude/s"`, "\"claude/\xff\"")},
		"a huge identity":             {body: replace(`"claude/s"`, `"claude/`+string(bytes.Repeat([]byte("x"), 60_000))+`"`)},
		"a percentage that is none":   {body: replace(`"estimate_percent":10`, `"estimate_percent":NaN`)},
		"an infinite percentage":      {body: replace(`"estimate_percent":10`, `"estimate_percent":1e999`)},
		"a hexadecimal percentage":    {body: replace(`"estimate_percent":10`, `"estimate_percent":0x10`)},
		"a true percentage":           {body: replace(`"estimate_percent":10`, `"estimate_percent":true`)},
		"a time in milliseconds":      {body: replace(`"resets_at":"`, `"resets_at":1796000400000,"x":"`)},
		"a time without a zone":       {body: replace(`"bound_at":"2026-03-02T08:00:00Z"`, `"bound_at":"2026-03-02 08:00:00"`)},
		"a leap second":               {body: replace(`"bound_at":"2026-03-02T08:00:00Z"`, `"bound_at":"2026-12-31T23:59:60Z"`)},
		"an empty time":               {body: replace(`"bound_at":"2026-03-02T08:00:00Z"`, `"bound_at":""`)},
		"deep nesting":                {body: `{"format":1,"accounts":` + string(bytes.Repeat([]byte("["), 100_000))},
	} {
		t.Run(name, func(t *testing.T) {
			db, _, err := readSnapshot([]byte(c.body))
			switch {
			case c.good && (err != nil || dump(t, db) != body[:len(`{"format":1,"sequence":`)]+"0"+body[bytes.IndexByte(good.Bytes(), '\n')-1:]):
				t.Errorf("a good snapshot was refused or changed: %v", err)
			case !c.good && err == nil:
				t.Error("it was taken")
			case c.newer != errors.Is(err, errors.ErrUnsupported):
				t.Errorf("error = %v", err)
			}
		})
	}
	t.Run("a binding twice", func(t *testing.T) {
		_, after, _ := strings.Cut(body, "\"bindings\":[\n")
		row, _, _ := strings.Cut(after, "],\n")
		if _, _, err := readSnapshot([]byte(replace(row, row+",\n"+row))); !errors.Is(err, ErrInvalid) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestNothingThatCannotBeWrittenIsTaken(t *testing.T) {
	d := quota.Declaration{ID: "not read yet", Length: fiveHours}
	for name, r := range map[string]quota.Reading{
		"not a number":             {Declaration: d, UsedPercent: math.NaN(), HasUsed: true, State: quota.Observed},
		"infinite":                 {Declaration: d, UsedPercent: math.Inf(1), HasUsed: true, State: quota.Observed},
		"milliseconds for seconds": {Declaration: d, UsedPercent: 50, HasUsed: true, State: quota.Observed, ResetsAt: time.Unix(1796000400000, 0)},
		"an endless window":        {Declaration: quota.Declaration{ID: "x", Length: math.MaxInt64}, UsedPercent: 5, HasUsed: true, State: quota.Observed},
		"a window without a name":  {Declaration: quota.Declaration{Length: fiveHours}, UsedPercent: 5, HasUsed: true, State: quota.Observed},
		"a strange state":          {Declaration: d, UsedPercent: 5, HasUsed: true, State: "mood"},
		"a time long ago":          {Declaration: d, UsedPercent: 5, HasUsed: true, State: quota.Observed, ObservedAt: time.Unix(-1e15, 0)},
	} {
		f := open(t, "a")
		f.must(f.Observe(id("a"), []quota.Reading{r}, f.now, f.now))
		if w := f.accounts[id("a")].Window(d.ID); w != nil && !w.TakenAt.Equal(f.now) {
			t.Errorf("%s: taken at %v", name, w.TakenAt)
		}
		f.pass(2 * time.Minute)
		if err := f.Snapshot(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]quota.Rejection{
		"a year beyond":    {Cause: quota.CauseQuota, WindowID: "5h", ClearsAt: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a strange window": {Cause: quota.CauseQuota, WindowID: "\x00\n"},
		"a long pause":     {Cause: quota.CauseThrottle, RetryAfter: math.MaxInt64},
	} {
		f := open(t, "a")
		f.reject(f.tryAny(), r)
		f.pass(week)
		if err := f.Snapshot(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f.recover()
	}
}

func (f *fixture) tryAny() uint64 {
	f.t.Helper()
	attempt, d := f.ask("", "m")
	if !d.Placed {
		f.t.Fatalf("nothing placed: %+v", d.Forecast)
	}
	return attempt
}
