package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/quota"
)

func TestMoveAndForget(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/s", "n")
	if _, err := f.MoveSession("claude/s", id("b"), f.now); err != nil {
		t.Fatal(err)
	}
	f.serve("b", "claude/s", "m")
	f.serve("b", "claude/s", "n")
	if a, b := f.accounts[id("a")], f.accounts[id("b")]; a.bindings != 0 || b.bindings != 2 || a.LiveSessions != 0 || b.LiveSessions != 2 {
		t.Errorf("bindings %d and %d, live %d and %d", a.bindings, b.bindings, a.LiveSessions, b.LiveSessions)
	}
	for name, c := range map[string]struct {
		key  string
		to   quota.AccountID
		want error
	}{
		"to an account that is not there": {"claude/s", id("x"), ErrUnknownAccount},
		"to another provider":             {"codex/s", id("a"), ErrUnknownAccount},
		"of a session that is not there":  {"claude/x", id("a"), ErrUnknownSession},
	} {
		if _, err := f.MoveSession(c.key, c.to, f.now); !errors.Is(err, c.want) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	f.lives("", "claude/s", "m")
	f.lives("", "claude/s", "n")
	if _, err := f.ForgetSession("claude/s", f.now); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("error = %v", err)
	}
	f.recover()
	f.lives("", "claude/s", "m")
}

func TestAForgottenSessionStartsAsANewOne(t *testing.T) {
	f := open(t, "a")
	for range 50 {
		f.serve("a", "claude/s", "m")
	}
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	if got := f.accounts[id("a")].Cadence.PerHour("m", f.now); got > 1e-9 {
		t.Errorf("it left a cadence of %v", got)
	}
	f.try("a", "claude/s", "m")
	if got, want := f.accounts[id("a")].Cadence.PerHour("m", f.now), f.demand.PerHour(); math.Abs(got-want) > 1e-9 {
		t.Errorf("it counts for %v an hour, a new one for %v", got, want)
	}
}

func TestAForgottenSessionLeavesMemory(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/s", "m")
	f.pass(2 * time.Minute)
	f.serve("a", "claude/s", "m") // its row is to be written again
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Hour)
	if len(f.live) != 0 || len(f.touched) != 0 {
		t.Errorf("%d sessions and %d rows are still in memory", len(f.live), len(f.touched))
	}
}

func TestAMoveIsOfAllModelsOrNone(t *testing.T) {
	f := open(t, "a", "b")
	f.serve("a", "claude/s", "m")
	f.serve("a", "claude/s", "n")
	f.Store.log = &refusing{Log: f.log, word: `"n"`}
	if sequence, err := f.MoveSession("claude/s", id("b"), f.now); err == nil || sequence != 0 {
		t.Errorf("moved: %d, %v", sequence, err)
	}
	f.lives("a", "claude/s", "m")
	f.lives("a", "claude/s", "n")
	if a, b := f.accounts[id("a")], f.accounts[id("b")]; a.bindings != 2 || b.bindings != 0 {
		t.Errorf("bindings %d and %d", a.bindings, b.bindings)
	}
}

func TestASessionOfManyModelsTakesWithItWhatItCounted(t *testing.T) {
	f := open(t, "a")
	last := fmt.Sprint("model-", maxModels+1)
	f.serve("a", "claude/other", last)
	want := f.accounts[id("a")].Cadence.PerHour(last, f.now)
	for i := range maxModels + 2 {
		f.serve("a", "claude/s", fmt.Sprint("model-", i))
		f.serve("a", "claude/s", fmt.Sprint("model-", i))
	}
	if _, err := f.ForgetSession("claude/s", f.now); err != nil {
		t.Fatal(err)
	}
	if got := f.accounts[id("a")].Cadence.PerHour(last, f.now); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v an hour are left of %s, the other session brought %v", got, last, want)
	}
}

func TestIdleBindingsExpire(t *testing.T) {
	f := open(t, "a")
	f.serve("a", "claude/old", "m")
	f.pass(29 * 24 * time.Hour)
	f.serve("a", "claude/young", "m")
	f.lives("a", "claude/old", "m")
	f.pass(25 * time.Hour)
	f.lives("", "claude/old", "m")
	f.lives("a", "claude/young", "m")
	f.recover()
	f.lives("", "claude/old", "m")
	f.lives("a", "claude/young", "m")
}

func TestTheLongestIdleGoWhenThereAreTooMany(t *testing.T) {
	f := open(t, "a")
	f.ApplySettings(Settings{MaxBindings: 3})
	for i := range 6 {
		f.now = f.now.Add(time.Minute)
		f.serve("a", fmt.Sprint("claude/", i), "m")
	}
	f.pass(time.Hour)
	f.must(f.Tick(f.now.Add(time.Second)))
	for i := range 6 {
		want := ""
		if i >= 3 {
			want = "a"
		}
		f.lives(want, fmt.Sprint("claude/", i), "m")
	}
	if f.accounts[id("a")].bindings != 3 || f.Stats().Bindings != 3 {
		t.Errorf("%d bindings counted", f.accounts[id("a")].bindings)
	}
}

func TestBindingsThatTakeTooMuchSpaceGo(t *testing.T) {
	f := open(t, "a")
	long := strings.Repeat(`<"`, (maxIdentity-8)/2)
	const n, limit = 1000, 500_000
	for i := range n {
		f.now = start.Add(time.Duration(i) * time.Minute)
		f.serve("a", fmt.Sprintf("claude/%s%08d", long, i), "m")
	}
	f.limit.bytes = limit
	f.pass(time.Second)
	if f.used.bytes > limit || f.used.bytes < limit*97/100 {
		t.Errorf("%d bindings take %d bytes, at most %d", f.used.bindings, f.used.bytes, limit)
	}
	var body bytes.Buffer
	f.must(writeSnapshot(&body, f.db.Txn(false), 0))
	if body.Len() > limit {
		t.Errorf("the snapshot has %d bytes", body.Len())
	}
	f.lives("", fmt.Sprintf("claude/%s%08d", long, 0), "m")
	f.lives("a", fmt.Sprintf("claude/%s%08d", long, n-1), "m")
	used := f.used
	f.must(f.Close())
	f.recover()
	if f.used != used {
		t.Errorf("after a restart they take %+v, before %+v", f.used, used)
	}
}

func TestTheSpaceOfARowIsAnUpperBound(t *testing.T) {
	if spare := journal.MaxSnapshotBytes - maxBindingBytes; spare < 4<<20 {
		t.Errorf("%d bytes of a snapshot are left for everything else", spare)
	}
	if maxExport < maxBindingBytes {
		t.Error("an export may be too long to be imported")
	}
	text := func(limit int) *rapid.Generator[string] {
		return rapid.OneOf(rapid.StringMatching(`["\\<>&]*`), rapid.StringOf(rapid.Rune())).Filter(func(s string) bool {
			return len(s) <= limit && printable(s)
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		row := anyBinding(t)
		row.Session = "claude/" + text(maxIdentity).Draw(t, "identity")
		row.Model, row.Account, row.Cause = text(maxName).Draw(t, "model"), text(maxName).Draw(t, "account"), text(maxCode).Draw(t, "cause")
		row.BoundBy, row.Cadence = BoundByOperator, 1.0/3e7
		row.Sequence, row.BoundSequence = math.MaxUint64, math.MaxUint64
		for i := range row.Moves {
			row.Moves[i].From, row.Moves[i].To = text(maxName).Draw(t, "from"), text(maxName).Draw(t, "to")
		}
		if data := marshalled(t, row); len(data)+2 > row.space().bytes {
			t.Fatalf("%d bytes, counted %d:\n%s", len(data)+2, row.space().bytes, data)
		}
	})
}

func TestExportAndImport(t *testing.T) {
	from, to := open(t, "a", "b"), open(t, "a", "b")
	from.serve("a", "claude/only-there", "m")
	from.serve("a", "claude/newer-there", "m")
	to.now = start.Add(-time.Hour)
	to.read("b", 0, 0)
	to.serve("b", "claude/newer-there", "m")
	to.now = start.Add(time.Hour)
	to.serve("b", "claude/newer-here", "m")
	from.serve("a", "claude/newer-here", "m")
	var exported bytes.Buffer
	from.must(from.Export(&exported, from.now))
	done, err := to.Import(bytes.NewReader(exported.Bytes()), to.now)
	if err != nil || done.Added != 2 || done.Kept != 1 {
		t.Fatalf("imported %+v, %v", done, err)
	}
	for range 2 {
		to.lives("a", "claude/only-there", "m")
		to.lives("a", "claude/newer-there", "m")
		to.lives("b", "claude/newer-here", "m")
		to.recover()
	}
	again, err := to.Import(bytes.NewReader(exported.Bytes()), to.now)
	if err != nil || again.Added != 0 || again.Kept != 3 {
		t.Errorf("imported again %+v, %v", again, err)
	}
}

func TestOfAnImportThatIsNotValidNothingIsTaken(t *testing.T) {
	const good = `{"session":"claude/good","account":"a","bound_by":"initial","bound_at":"2026-03-02T08:00:00Z","last_used":"2026-03-02T08:00:00Z"}`
	for name, bad := range map[string]string{
		"nothing":            "",
		"no JSON":            "{",
		"no object":          "[]",
		"two documents":      `{"format":1,"bindings":[]}{"format":1,"bindings":[]}`,
		"another format":     `{"format":2,"bindings":[` + good + `]}`,
		"no format":          `{"bindings":[` + good + `]}`,
		"a foreign field":    `{"format":1,"bindings":[` + good + `],"token":"x"}`,
		"a long name":        `{"format":1,"` + strings.Repeat("x", 10_000) + `":1}`,
		"bindings twice":     `{"format":1,"bindings":[],"bindings":[` + good + `]}`,
		"a number as a time": `{"format":1,"bindings":[` + good + `,{"session":"claude/s","account":"a","bound_by":"initial","bound_at":1796000400000}]}`,
		"a bad session":      `{"format":1,"bindings":[` + good + `,{"session":"nobody","account":"a","bound_by":"initial"}]}`,
		"a credential":       `{"format":1,"bindings":[` + good + `,{"session":"claude/s","account":"sk-ant-oat01-made-up-made-up","bound_by":"initial"}]}`,
		"a null":             `{"format":1,"bindings":null}`,
		"no account":         `{"format":1,"bindings":[` + good + `,{"session":"claude/s","bound_by":"initial"}]}`,
		"a line break":       `{"format":1,"bindings":[` + good + `,{"session":"claude/a\nb","account":"a","bound_by":"initial"}]}`,
		"a strange maker":    `{"format":1,"bindings":[` + good + `,{"session":"claude/s","account":"a","bound_by":"me"}]}`,
		"a session twice":    `{"format":1,"bindings":[` + good + `,` + good + `]}`,
		"an account twice":   `{"format":1,"bindings":[` + good + `,{"session":"claude/s","account":"a","Account":"b","bound_by":"initial"}]}`,
		"a year after 9999":  `{"format":1,"bindings":[` + good + `,{"session":"claude/s","account":"a","bound_by":"initial","bound_at":"10000-01-01T00:00:00Z"}]}`,
		"deep nesting":       strings.Repeat("[", 100_000),
		"too much":           `{"format":1,"bindings":[` + good + `]}` + strings.Repeat(" ", maxExport),
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "a")
			if done, err := f.Import(strings.NewReader(bad), f.now); !errors.Is(err, ErrInvalid) || len(err.Error()) > 2*maxReason {
				t.Errorf("imported %+v, %v", done, err)
			}
			if n := f.Stats().Bindings; n != 0 {
				t.Errorf("%d bindings were taken", n)
			}
		})
	}
	gone := errors.New("the client is gone")
	if _, err := open(t, "a").Import(iotest.ErrReader(gone), start); !errors.Is(err, gone) || errors.Is(err, ErrInvalid) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func TestBindingsToAccountsThatAreNotConfiguredWaitForThem(t *testing.T) {
	from, to := open(t, "work"), open(t, "a")
	from.serve("work", "claude/s", "m")
	var exported bytes.Buffer
	from.must(from.Export(&exported, from.now))
	if done, err := to.Import(&exported, to.now); err != nil || done.Added != 1 {
		t.Fatalf("imported %+v, %v", done, err)
	}
	to.lives("work", "claude/s", "m")
	to.configs = append(to.configs, config("work"))
	to.recover()
	to.serve("work", "claude/s", "m")
}

func TestAnImportOfAMachineWhoseClockIsAhead(t *testing.T) {
	const ahead = 3 * time.Hour
	from, to := openAt(t, start.Add(ahead), "a"), open(t, "b")
	to.serve("b", "claude/used-here-before", "m")
	from.serve("a", "claude/used-here-before", "m")
	from.serve("a", "claude/used-here-later", "m")
	from.serve("a", "claude/only-there", "m")
	from.now, to.now = from.now.Add(time.Hour), to.now.Add(time.Hour)
	to.serve("b", "claude/used-here-later", "m")
	var exported bytes.Buffer
	from.must(from.Export(&exported, from.now))
	done, err := to.Import(bytes.NewReader(exported.Bytes()), to.now)
	if err != nil || done.Added != 1 || done.Kept != 2 {
		t.Errorf("imported %+v, %v", done, err)
	}
	to.lives("b", "claude/used-here-later", "m")
	if view, _ := to.Session("claude/only-there"); !view.LastUsed.Equal(start) || !view.Bindings[0].BoundAt.Equal(start) {
		t.Errorf("used at %v", view.LastUsed)
	}
	wild := `{"format":1,"exported_at":"9999-01-01T00:00:00Z","bindings":[{"session":"claude/x","account":"a","bound_by":"initial","last_used":"2000-01-01T00:00:00Z"}]}`
	if _, err := to.Import(strings.NewReader(wild), to.now); err != nil {
		t.Error(err)
	}
}

func TestSessionKeys(t *testing.T) {
	long := strings.Repeat("x", 257)
	for name, c := range map[string]struct {
		identity, want string
		hashed         bool
	}{
		"a plain identity":        {identity: "0a1b-2c", want: "claude/0a1b-2c"},
		"none":                    {},
		"the longest":             {identity: long[:256], want: "claude/" + long[:256]},
		"a longer one is hashed":  {identity: long, hashed: true},
		"a line break is hashed":  {identity: "a\nb", hashed: true},
		"a zero byte is hashed":   {identity: "a\x00b", hashed: true},
		"a bidi mark is hashed":   {identity: "a\u202eb", hashed: true},
		"invalid UTF-8 is hashed": {identity: "a\xffb", hashed: true},
		"a credential is hashed":  {identity: "sk-ant-oat01-made-up-made-up", hashed: true},
		"one inside is hashed":    {identity: "of sk-proj-made-up-made-up-made", hashed: true},
		"a token is hashed":       {identity: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtYWRlIHVwIn0.", hashed: true},
		"a word with sk- in it":   {identity: "task-sk-list", want: "claude/task-sk-list"},
	} {
		t.Run(name, func(t *testing.T) {
			got := SessionKey("claude", c.identity)
			digest, hashed := strings.CutPrefix(got, "claude/sha256:")
			if hashed != c.hashed || (hashed && len(digest) != 64) || (!hashed && got != c.want) {
				t.Errorf("key = %q", got)
			}
			if again := boundedSession("claude", got); again != got {
				t.Errorf("the key of a key = %q", again)
			}
		})
	}
	if SessionHash("claude/a") == SessionHash("claude/b") || len(SessionHash("claude/a")) != 12 || SessionHash("") != "" {
		t.Error("hashes do not tell sessions apart")
	}
}

func TestStrangeSessionsAndModelsAreBounded(t *testing.T) {
	f := open(t, "a")
	strange := "claude/" + string(bytes.Repeat([]byte("é\n"), 500))
	for range 2 {
		f.serve("a", strange, string(bytes.Repeat([]byte("m\x00"), 500)))
	}
	if n := f.Stats().Bindings; n != 1 {
		t.Errorf("%d bindings", n)
	}
	for i := range 10 * maxModels {
		f.serve("a", "claude/many", fmt.Sprint("model-", i))
	}
	if n := f.Stats().Bindings; n > maxModels+2 {
		t.Errorf("%d bindings of one session", n)
	}
}
