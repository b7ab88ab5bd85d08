package journal

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/clock"
)

const hostileLog = "00112233445566ff"

// record is one record of the hostile journals as they come, and as a line of ours.
type record struct{ theirs, ours []byte }

// hostileRecords are the records of the good journal.
func hostileRecords(t *testing.T) []record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hostile", "journal", "j00-good.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var records []record
	for _, theirs := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		crc, ok := parseCRC(theirs[:crcDigits])
		object := theirs[crcDigits+1:]
		if !ok || crc != crc32.Checksum(object, castagnoli) {
			t.Fatalf("the good journal has a bad record: %s", theirs)
		}
		var fields struct{ Seq uint64 }
		if err := json.Unmarshal(object, &fields); err != nil {
			t.Fatal(err)
		}
		ours := appendLine(nil, lineCheck(hostileLog, 3), line{sequence: fields.Seq, kind: entryLine, body: object})
		records = append(records, record{theirs, bytes.TrimSuffix(ours, []byte("\n"))})
	}
	return records
}

// translate writes a hostile journal in our format. A part of a record becomes the same part of our line.
func translate(records []record, data []byte) []byte {
	ours := appendBegin(nil, begin{Format: Format, Log: hostileLog, Generation: 3})
	for len(data) > 0 {
		best, length := record{}, 0
		for _, r := range records {
			if n := commonPrefix(r.theirs, data); n > length {
				best, length = r, n
			}
		}
		if length < crcDigits+1 {
			ours, data = append(ours, data[0]), data[1:]
			continue
		}
		ours = append(ours, best.ours[:len(best.ours)*length/len(best.theirs)]...)
		data = data[length:]
	}
	return ours
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestHostileJournals(t *testing.T) {
	for name, want := range map[string]struct {
		Recovered
		warnings []string
	}{
		"j00-good":        {Recovered: Recovered{Entries: 20, Sequence: 20}},
		"j01-torn-tail":   {Recovered: Recovered{Entries: 19, Sequence: 19, TornBytes: 1}},
		"j02-no-newline":  {Recovered: Recovered{Entries: 20, Sequence: 20}}, // the checksum is good
		"j04-dup-seq":     {Recovered: Recovered{Entries: 20, Sequence: 20, Duplicates: 5}},
		"j05-gap":         {Recovered: Recovered{Entries: 16, Sequence: 20, Missing: 4}, warnings: []string{"4 entries are missing, the first is 9"}},
		"j09-huge-length": {Recovered: Recovered{Entries: 20, Sequence: 20, BadLines: 1}, warnings: []string{"1 damaged line"}},
		"j14-interleaved": {Recovered: Recovered{Entries: 18, Sequence: 20, BadLines: 1, Missing: 2}, warnings: []string{"1 damaged line", "as if two daemons had written", "2 entries are missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "hostile", "journal", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			d := diskWith(map[string][]byte{"journal-3": translate(hostileRecords(t), data)})
			_, r, findings, err := recoverOn(d)
			if err != nil {
				t.Fatal(err)
			}
			if r.TornBytes > 0 {
				r.TornBytes = 1
			}
			r.Duration = 0
			if r != want.Recovered {
				t.Errorf("recovered %+v, want %+v", r, want.Recovered)
			}
			var warnings []string
			for _, f := range findings {
				if f.Level == Warning {
					warnings = append(warnings, f.What)
				}
			}
			if !slices.EqualFunc(warnings, want.warnings, strings.Contains) {
				t.Errorf("warned %q, want %q", warnings, want.warnings)
			}
		})
	}
}

func TestAForeignFileIsKeptAsideAndTheSnapshotServes(t *testing.T) {
	im := smallImage(t)
	foreign, err := os.ReadFile(filepath.Join("testdata", "hostile", "journal", "j10-foreign.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	d := im.with("journal-3", foreign)
	im.mustLoseAtMost(t, d, 8, "foreign journal")
	if kept := d.files()["journal-3.damaged"]; !bytes.Equal(kept, foreign) {
		t.Errorf("kept aside is %q", kept)
	}
}

func TestAnEmptyJournalMeansTheSnapshotAlone(t *testing.T) {
	im := smallImage(t)
	empty, err := os.ReadFile(filepath.Join("testdata", "hostile", "journal", "j11-empty.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	o, r, _, err := recoverOn(im.with("journal-3", empty))
	if err != nil || len(o.rows) != 16 || r.BadLines != 0 {
		t.Errorf("%d rows, %+v, %v", len(o.rows), r, err)
	}
}

// wrap puts a body into a snapshot of the image's log.
func (im image) wrap(body []byte, crc uint32) []byte {
	h, _ := parseHeader(im.files["snapshot-3"])
	h.length, h.bodyCRC = uint64(len(body)), crc
	return append(h.encode(), body...)
}

// TestHostileSnapshots shows the part of this package: what does not check is never shown to the owner, what does is shown byte for
// byte, and either way the start succeeds with the snapshot before.
func TestHostileSnapshots(t *testing.T) {
	im := smallImage(t)
	bodies, err := filepath.Glob(filepath.Join("testdata", "hostile", "snapshots", "*"))
	if err != nil || len(bodies) == 0 {
		t.Fatal(bodies, err)
	}
	for _, path := range bodies {
		t.Run(filepath.Base(path), func(t *testing.T) {
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			right := crc32.Checksum(body, castagnoli)
			for what, data := range map[string][]byte{
				"without a header":        body,
				"with the wrong checksum": im.wrap(body, right+1),
				"cut":                     im.wrap(append(body, 'x'), crc32.Checksum(append(body, 'x'), castagnoli))[:headerBytes+len(body)],
			} {
				d := im.with("snapshot-3", data)
				im.mustLoseAtMost(t, d, 0, "%s", what)
				if kept, ok := d.files()["snapshot-3.damaged"]; !ok || !bytes.Equal(kept, data) {
					t.Errorf("%s: not kept aside", what)
				}
			}
			seen := &witness{}
			j, err := Open(Options{FS: im.with("snapshot-3", im.wrap(body, right))})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if err := j.Recover(seen.restore, seen.apply); err != nil {
				t.Fatal(err)
			}
			if len(seen.bodies) != 2 || !bytes.Equal(seen.bodies[0], body) {
				t.Errorf("shown were %d snapshots", len(seen.bodies))
			}
		})
	}
}

// TestClockScripts moves the wall clock as each script says, between entries and between runs.
func TestClockScripts(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "hostile", "clock.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			start, err := time.Parse(time.RFC3339, row[1])
			if err != nil {
				t.Fatal(err)
			}
			seconds, err := strconv.ParseFloat(row[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			sequenceIgnoresClock(t, start, time.Duration(seconds*float64(time.Second)))
		})
	}
}

func sequenceIgnoresClock(t *testing.T, start time.Time, jump time.Duration) {
	now := clock.NewFake(start)
	d := newDisk(1)
	d.fail = func(op, _ string) error {
		if op == "sync" {
			now.Advance(jump) // while it is being timed
		}
		return nil
	}
	told := func(took time.Duration) {
		if took < 0 {
			t.Errorf("a commit took %v", took)
		}
	}
	last := uint64(0)
	for range 3 {
		j, err := Open(Options{FS: d, Clock: now, Limits: quick(), OnCommit: told})
		if err != nil {
			t.Fatal(err)
		}
		o := &owner{}
		if err := j.Recover(o.restore, o.apply); err != nil {
			t.Fatal(err)
		}
		if o.last != last || !j.recovered.Clean {
			t.Errorf("recovered up to %d, want %d: %+v", o.last, last, j.recovered)
		}
		o.answer(j)
		for range 5 {
			sequence := mustWrite(t, j, o, "a", strconv.FormatUint(last+1, 10))
			mustBeDurable(t, j, sequence)
			if sequence != last+1 {
				t.Errorf("sequence %d after %d", sequence, last)
			}
			last = sequence
			now.Advance(jump)
			if err := j.Snapshot(o.snapshot); err != nil {
				t.Error(err)
			}
		}
		if got := o.rows["a"].Value; got != strconv.FormatUint(last, 10) {
			t.Errorf("the newest value is %s, want %d", got, last)
		}
		if s := j.Stats(); s.SnapshotDuration < 0 {
			t.Errorf("a snapshot took %v", s.SnapshotDuration)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
