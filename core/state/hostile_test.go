package state

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// What the hostile snapshots say, in their own format.
var (
	theirSnapshot = regexp.MustCompile(`(?s)^(.*?)\{(?:"version": (\d+), )?"written_at": "[^"]*", "accounts": \[\{"id": (".*?"), ` +
		`"provider": "claude", "enabled": true, "windows": \[\{"kind": "rolling", "minutes": 300, "used": (.*?), "resets_at": (.*?), "state": "fresh"\}\]\}\], ` +
		`"bindings": \[(.*?)\](.*)\}\n?(.*)$`)
	theirBinding = regexp.MustCompile(`(?s)\{"session": "(.*?)", "account": (".*?"), "provider": "([a-z]+)", "seq": (\d+)\}`)
)

// inOurFormat writes a hostile snapshot as ours. What is strange about it stays as strange, and what is no snapshot as it is.
func inOurFormat(theirs []byte) []byte {
	m := theirSnapshot.FindSubmatch(theirs)
	if m == nil {
		return theirs
	}
	before, version, name, used, reset, bindings, more, after := m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]
	var ours bytes.Buffer
	ours.Write(before)
	ours.WriteString("{")
	if len(version) > 0 {
		fmt.Fprintf(&ours, `"format":%s,`, version)
	}
	account := fmt.Sprintf(`"account":{"provider":"claude","name":%s}`, name)
	fmt.Fprintf(&ours, "\"sequence\":9,\n\"accounts\":[\n{%s,\"sequence\":1}],\n\"bindings\":[", account)
	for i, b := range theirBinding.FindAllSubmatch(bindings, -1) {
		if i > 0 {
			ours.WriteString(",")
		}
		fmt.Fprintf(&ours, "\n"+`{"session":"%s/%s","model":"m","account":%s,"bound_at":"2026-11-30T02:00:00Z","last_used":"2026-11-30T02:00:00Z","by":"initial","sequence":%s}`,
			b[3], b[1], b[2], b[4])
	}
	fmt.Fprintf(&ours, "],\n\"blockers\":[],\n\"windows\":[\n"+`{%s,"window":{"id":"5h","kind":"rolling","length":18000000000000,"declared":true,"evidence":"observed",`+
		`"shown":{"used_percent":%[2]s,"has_used":true,"state":"observed","source":"official_client"},"estimate_percent":%[2]s,`+
		`"taken_at":"2026-11-30T02:00:00Z","received_at":"2026-11-30T02:00:00Z","resets_at":%s},"sequence":2}],`+"\n"+`"learned":[]%s}`+"\n%s",
		account, used, reset, more, after)
	return ours.Bytes()
}

// refusal of a whole snapshot, and for what.
type refusal string

const (
	notRefused refusal = ""
	asNoJSON   refusal = "no JSON of ours"
	asInvalid  refusal = "a value that is not valid"
	asNewer    refusal = "a newer release"
)

// verdict is what must become of a hostile snapshot.
type verdict struct {
	refused refusal
	// used is the percentage shown of one that is read; -1: it must be unknown.
	used float64
	// noReset: the reset must be unknown. moved: the session is placed anew.
	noReset, moved bool
}

func verdicts() map[string]verdict {
	bad := verdict{refused: asNoJSON}
	return map[string]verdict{
		"s00-good": {used: 28}, "s01-empty": bad, "s02-zeros": bad, "s03-half": bad, "s04-trailing": bad, "s05-bom": bad, "s06-crlf-nul": bad,
		"s07-dup-keys": bad, "s09-deep": bad,
		"s11-pct-neg": {used: -1}, "s11-pct-over": {used: -1}, "s11-pct-tiny": {used: 0}, "s11-pct-negzero": {used: 0},
		"s11-pct-nan": bad, "s11-pct-inf": bad, "s11-pct-hex": bad, "s11-pct-null": bad, "s11-pct-true": bad,
		"s12-reset-ms": bad, "s12-reset-s": bad, "s12-reset-us": bad, "s12-reset-str-s": bad, "s12-reset-empty": bad,
		"s12-reset-leap": bad, "s12-reset-naive": bad,
		"s12-reset-past": {used: 28, noReset: true}, "s12-reset-far": {used: 28, noReset: true}, "s12-reset-offset": {used: 0}, // it has passed
		"s14-secret-field": bad, "s15-secret-value": {refused: asInvalid}, "s16-escapes": {refused: asInvalid}, "s17-linebreak": {refused: asInvalid},
		"s18-bidi": {refused: asInvalid}, "s19-bad-utf8": {refused: asInvalid}, "s20-lone-surrogate": {refused: asInvalid},
		"s21-version-99": {refused: asNewer}, "s22-version-0": {refused: asInvalid}, "s23-dup-binding": {refused: asInvalid},
		// A binding names its account under its session's provider, so one that crosses providers names an account that is not there.
		"s24-dangling-binding": {used: 28, moved: true}, "s25-cross-provider": {used: 28, moved: true},
		"s26-million-bindings": {used: 28, moved: true}, "s28-huge-string": {refused: asInvalid}, "s29-tmp-left": bad,
	}
}

func TestHostileSnapshots(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "journal", "testdata", "hostile", "snapshots", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	want := verdicts()
	for _, path := range paths {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		t.Run(name, func(t *testing.T) {
			v, ok := want[name]
			if !ok {
				t.Fatal("nothing is asserted")
			}
			body := inOurFormat(hostileSnapshot(t, path))
			if name == "s03-half" {
				whole := inOurFormat(hostileSnapshot(t, filepath.Join(filepath.Dir(path), "s00-good.json")))
				body = whole[:len(whole)/2]
			}
			if v.refused != notRefused {
				mustBeRefused(t, body, v.refused)
				return
			}
			mustServe(t, body, v)
		})
	}
	if len(paths) != len(want) {
		t.Errorf("%d files, %d verdicts", len(paths), len(want))
	}
}

func hostileSnapshot(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) != ".gz" {
		return data
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(plain); err != nil {
		t.Fatal(err)
	}
	return data
}

func mustBeRefused(t *testing.T, body []byte, want refusal) {
	t.Helper()
	_, _, err := readSnapshot(body)
	switch {
	case err == nil:
		t.Fatalf("read: %.2000s", body)
	case strings.Contains(err.Error(), "CANARY"):
		t.Errorf("the error shows what is secret: %v", err)
	case want == asInvalid && !errors.Is(err, ErrInvalid), (want == asNewer) != errors.Is(err, errors.ErrUnsupported):
		t.Errorf("for another reason: %v", err)
	}
}

// mustServe opens a store on the snapshot, asks for its session, and writes it again.
func mustServe(t *testing.T, body []byte, v verdict) {
	t.Helper()
	const session = "claude/0a1b2c3d-1111-4222-8333-444455556666"
	work := config("work")
	work.Windows = work.Windows[:1]
	f := &fixture{t: t, now: time.Date(2026, 11, 30, 2, 1, 0, 0, time.UTC), configs: []AccountConfig{work}}
	log := &scripted{MemoryLog: NewMemoryLog(false), snapshot: body}
	log.next = 1 << 20 // after all that the snapshots hold
	store, err := Open(log, Settings{})
	f.must(err)
	f.Store = store
	f.must(f.ApplyAccounts(f.configs, f.now))
	w := f.Accounts(f.now)[0].Windows[0]
	if got := w.UsedPercent; v.used < 0 && got != nil || v.used >= 0 && (got == nil || *got != v.used) || w.State == quota.ViewExhausted {
		t.Errorf("shown as %s, used %v, want %v", w.State, got, v.used)
	}
	if v.noReset != w.ResetsAt.IsZero() && w.State != quota.ViewRolled && v.used >= 0 {
		t.Errorf("resets at %v", w.ResetsAt)
	}
	if moved := f.Accounts(f.now)[0].Bindings != 1; moved != v.moved {
		t.Errorf("the account has the session: %v", !moved)
	}
	f.serve("work", session, "m")
	f.lives("work", session, "m")
	f.pass(2 * time.Minute)
	if _, _, err := readSnapshot([]byte(dump(t, f.db))); err != nil {
		t.Errorf("what was read cannot be written: %v", err)
	}
}
