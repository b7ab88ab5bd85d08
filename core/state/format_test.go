package state

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/quota"
)

var update = flag.Bool("update", false, "write golden files of the present format")

// everything is one entry of each type with every field filled.
func everything() []entry {
	later := start.Add(fiveHours)
	window := quota.Window{
		Declaration: quota.Declaration{ID: "5h", Kind: quota.KindRolling, Length: fiveHours, Models: []string{"opus*"}, Label: "5h"},
		Declared:    true, Evidence: quota.EvidenceObserved,
		Shown:           quota.Shown{UsedPercent: 42, HasUsed: true, State: quota.Observed, Source: quota.SourceResponseHeader},
		EstimatePercent: 42.5, Stamp: quota.Counts{{Model: "opus", Count: 3}}, TakenAt: start, ReceivedAt: start,
		ResetsAt: later, PredictedAt: later, Distrusted: true,
		Baseline: quota.Baseline{Valid: true, UsedPercent: 40, Completed: quota.Counts{{Model: "opus", Count: 2}}},
		Learned:  []quota.Consumption{{Model: "opus", Percent: 12.5, Requests: 30}},
	}
	return []entry{
		&accountRow{Account: id("work"), SwitchedOff: true, Generation: "g2"},
		&bindingRow{
			Session: "claude/0a1b2c3d", Model: "opus", Account: "work", BoundAt: start, LastUsed: later, BoundBy: BoundByFailover,
			Cause: "quota", Cadence: 21.5, BoundSequence: 1,
			Moves: []Move{{From: "home", To: "work", At: start, By: BoundByFailover, Cause: "quota"}},
		},
		&bindingRow{Session: "claude/gone", Account: "work", BoundAt: start, LastUsed: start, BoundBy: BoundInitially},
		&unbind{Session: "claude/gone", Cause: "idle"},
		&blockersRow{Account: id("work"), Blockers: []quota.Blocker{{
			Cause: quota.CauseQuota, Model: "opus", Window: "5h", ClearsAt: later, NoLaterThan: later, ObservedAt: start, AttemptAt: start,
			ShownPercent: 98, Reason: "usage_limit_reached",
		}}},
		&clocks{Account: id("work"), Windows: []quota.Window{window}, Completed: quota.Counts{{Model: "opus", Count: 7}}},
		&demand{Demand: quota.Demand{Events: 3, Hours: 0.5, Ended: 1}},
	}
}

// TestFormatOne reads what the first release wrote, and writes it in the same bytes. These files never change: a new format
// gets a folder of its own.
func TestFormatOne(t *testing.T) {
	entriesFile, snapshotFile := filepath.Join("testdata", "format-1", "entries.jsonl"), filepath.Join("testdata", "format-1", "snapshot.json")
	var lines [][]byte
	for _, e := range everything() {
		line, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	present := empty(t)
	apply(t, present, 1, lines)
	if *update {
		for file, data := range map[string][]byte{entriesFile: append(bytes.Join(lines, []byte("\n")), '\n'), snapshotFile: []byte(dump(t, present))} {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadFile(entriesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(entries), string(bytes.Join(lines, []byte("\n")))+"\n"); diff != "" {
		t.Errorf("the entries are written as others:\n%s", diff)
	}
	replayed := empty(t)
	apply(t, replayed, 1, bytes.Split(bytes.TrimSpace(entries), []byte("\n")))
	if diff := cmp.Diff(dump(t, present), dump(t, replayed)); diff != "" {
		t.Errorf("the entries are read as another state:\n%s", diff)
	}
	snapshot, err := os.ReadFile(snapshotFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(snapshot), dump(t, present)); diff != "" {
		t.Errorf("the snapshot is written as another:\n%s", diff)
	}
	restored, _, err := readSnapshot(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(t, present), dump(t, restored)); diff != "" {
		t.Errorf("the snapshot is read as another state:\n%s", diff)
	}
}

// TestExportFormatOne does the same for what moves between machines.
func TestExportFormatOne(t *testing.T) {
	file := filepath.Join("testdata", "format-1", "export.json")
	f := open(t, "work")
	_, err := f.commit(everything()...)
	f.must(err)
	var written bytes.Buffer
	f.must(writeExport(&written, f.db.Txn(false), start))
	if *update {
		f.must(os.WriteFile(file, written.Bytes(), 0o644))
	}
	golden, err := os.ReadFile(file)
	f.must(err)
	if diff := cmp.Diff(string(golden), written.String()); diff != "" {
		t.Errorf("the export is written as another:\n%s", diff)
	}
	other := open(t, "work")
	other.now = start.Add(week)
	if done, err := other.Import(bytes.NewReader(golden), other.now); err != nil || done.Added != 1 {
		t.Errorf("imported %+v, %v", done, err)
	}
	var again bytes.Buffer
	f.must(writeExport(&again, other.db.Txn(false), start))
	if diff := cmp.Diff(string(golden), again.String()); diff != "" {
		t.Errorf("the export is read as another state:\n%s", diff)
	}
}
