package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// golden are the files of a directory of format 1 as the first release wrote them. They are never written anew.
func golden(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "format-1", "*-*"))
	if err != nil || len(paths) != 4 {
		t.Fatal(paths, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = data
	}
	return files
}

func TestFormat1IsRead(t *testing.T) {
	o, r, findings, err := recoverOn(diskWith(golden(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean || r.Generation != 3 || r.SnapshotSequence != 4 || r.Sequence != 6 || r.Entries != 2 || len(findings) != 0 {
		t.Errorf("recovered %+v, %v", r, findings)
	}
	want := map[string]row{"claude/one": {5, "home"}, "claude/two": {2, "work"}, "codex/three": {6, "ü \" \\"}}
	if !maps.Equal(o.rows, want) {
		t.Errorf("rows %v, want %v", o.rows, want)
	}
}

func TestFormat1IsWrittenByteForByte(t *testing.T) {
	files := golden(t)
	h, body, err := parseSnapshot(files["snapshot-3"])
	if err != nil {
		t.Fatal(err)
	}
	if again := append(h.encode(), body...); !bytes.Equal(again, files["snapshot-3"]) {
		t.Errorf("snapshot is written as %q", again)
	}
	b, ok := parseBegin(bytes.Split(files["journal-3"], []byte("\n"))[0])
	if !ok {
		t.Fatal("the first line is not read")
	}
	again := appendBegin(nil, b)
	for _, raw := range bytes.Split(bytes.TrimSuffix(files["journal-3"], []byte("\n")), []byte("\n"))[1:] {
		l, ok := parseLine(lineCheck(b.Log, 3), raw)
		if !ok {
			t.Fatalf("not read: %s", raw)
		}
		again = appendLine(again, lineCheck(b.Log, 3), l)
	}
	if !bytes.Equal(again, files["journal-3"]) {
		t.Errorf("journal is written as %q", again)
	}
}

func TestANewerFormatIsRefusedAndNotAByteIsTouched(t *testing.T) {
	newerSnapshot := header{format: 2, log: hostileLog, generation: 9}.encode()
	newerJournal := appendBegin(nil, begin{Format: 2, Log: hostileLog, Generation: 9})
	for name, data := range map[string][]byte{
		"snapshot-9": append(newerSnapshot, "a body of another kind"...),
		"journal-9":  append(newerJournal, "lines of another kind\n"...),
		"snapshot-2": append(newerSnapshot, "older than one of ours, all the same"...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, dirMode); err != nil {
				t.Fatal(err)
			}
			files := golden(t)
			files[name] = data
			files["snapshot-4.tmp"] = []byte("left over")
			for name, data := range files {
				if err := os.WriteFile(filepath.Join(dir, name), data, fileMode); err != nil {
					t.Fatal(err)
				}
			}
			longAgo(t, dir)
			before := contentsOf(t, dir)
			_, err := Open(Options{Dir: dir})
			var newer *NewerFormatError
			if !errors.As(err, &newer) || newer.File != name || newer.Format != 2 || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("opened, or for another reason: %v", err)
			}
			if _, _, err := Inspect(dir, (&owner{}).restore, (&owner{}).apply); !errors.As(err, &newer) {
				t.Errorf("inspect: %v", err)
			}
			if after := contentsOf(t, dir); !slices.Equal(before, after) {
				t.Error("something was touched")
			}
		})
	}
}

// longAgo makes every file of the directory one that was written an hour ago, so that one written now shows.
func longAgo(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	then := time.Now().Add(-time.Hour)
	for _, path := range paths {
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatANewerReleasePutInsideIsRefusedAndNotAByteIsTouched(t *testing.T) {
	unsupported := fmt.Errorf("version 99: %w", errors.ErrUnsupported)
	for name, test := range map[string]struct {
		file string
		left int
		*owner
	}{
		"by restore": {file: "snapshot-3", left: 1, owner: &owner{}},
		"by apply":   {file: "journal-3", owner: &owner{refuse: func(uint64) error { return unsupported }}},
	} {
		t.Run(name, func(t *testing.T) {
			d := diskWith(golden(t))
			before := d.files()
			j, err := Open(Options{FS: d})
			if err != nil {
				t.Fatal(err)
			}
			r := &refusal{owner: test.owner, left: test.left, err: unsupported}
			var newer *NewerFormatError
			if err := j.Recover(r.restore, r.apply); !errors.As(err, &newer) || newer.File != test.file || !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("recovered, or for another reason: %v", err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if !maps.EqualFunc(before, d.files(), bytes.Equal) {
				t.Error("something was touched")
			}
		})
	}
}

func TestADamagedFormatIsDamageAndNotANewerFormat(t *testing.T) {
	for name, at := range map[string]int{"snapshot-3": len(magic) + 1, "journal-3": bytes.Index(golden(t)["journal-3"], []byte(`"format":`)) + len(`"format":`)} {
		files := golden(t)
		if files[name][at] != '1' {
			t.Fatalf("%s has no format at %d", name, at)
		}
		files[name][at] = '3' // one flipped bit
		o, _, findings, err := recoverOn(diskWith(files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(o.rows) != 3 || len(findings) == 0 {
			t.Errorf("%s: rows %v, findings %v", name, o.rows, findings)
		}
	}
}

func TestOnlyTheExactFormOfALineIsRead(t *testing.T) {
	check := lineCheck(hostileLog, 1)
	valid := line{sequence: 7, kind: entryLine, body: []byte(`{"a":1}`)}
	encoded := appendLine(nil, check, valid)
	if l, ok := parseLine(check, encoded[:len(encoded)-1]); !ok || l.sequence != 7 || string(l.body) != `{"a":1}` {
		t.Fatalf("not read: %s", encoded)
	}
	for name, object := range map[string]string{
		"space":             `{"sequence": 7,"type":"entry","body":{}}`,
		"order":             `{"type":"entry","sequence":7,"body":{}}`,
		"leading zero":      `{"sequence":07,"type":"entry","body":{}}`,
		"sign":              `{"sequence":+7,"type":"entry","body":{}}`,
		"negative":          `{"sequence":-7,"type":"entry","body":{}}`,
		"sequence zero":     `{"sequence":0,"type":"entry","body":{}}`,
		"sequence too high": `{"sequence":9007199254740993,"type":"entry","body":{}}`,
		"unknown type":      `{"sequence":7,"type":"other","body":{}}`,
		"second begin":      `{"sequence":7,"type":"begin","body":{}}`,
		"body not object":   `{"sequence":7,"type":"entry","body":[]}`,
		"body cut":          `{"sequence":7,"type":"entry","body":{}`,
		"two bodies":        `{"sequence":7,"type":"entry","body":{},"body":{}}`,
		"something after":   `{"sequence":7,"type":"entry","body":{}} `,
		"not an object":     `7`,
		"empty":             ``,
	} {
		crc := appendLine(nil, check, valid)[:0]
		crc = fmt.Appendf(crc, "%s %s", checksumOf(check, object), object)
		if l, ok := parseLine(check, crc); ok {
			t.Errorf("%s: read as %+v", name, l)
		}
	}
	for name, raw := range map[string]string{
		"upper case checksum": strings.ToUpper(string(encoded[:crcDigits])) + string(encoded[crcDigits:len(encoded)-1]),
		"of another log":      string(appendLine(nil, lineCheck("ff"+hostileLog[2:], 1), valid)[:len(encoded)-1]),
		"of another journal":  string(appendLine(nil, lineCheck(hostileLog, 2), valid)[:len(encoded)-1]),
	} {
		if _, ok := parseLine(check, []byte(raw)); ok && raw != string(encoded[:len(encoded)-1]) {
			t.Errorf("%s: read", name)
		}
	}
}

func checksumOf(check uint32, object string) string {
	l := appendLine(nil, check, line{})
	putCRC(l, updateCRC(check, object))
	return string(l[:crcDigits])
}
