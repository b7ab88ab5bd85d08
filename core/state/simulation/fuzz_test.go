package simulation

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzTrace: no trace makes a run panic, and every decision is one line.
func FuzzTrace(f *testing.F) {
	files, err := filepath.Glob("testdata/traces/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		trace, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(trace)
	}
	f.Fuzz(func(t *testing.T, trace []byte) {
		var out bytes.Buffer
		result, err := Run(bytes.NewReader(trace), &out, Options{Serve: true})
		if lines := bytes.Count(out.Bytes(), []byte("\n")); err == nil && lines != result.Decisions {
			t.Errorf("%d lines for %d decisions", lines, result.Decisions)
		}
	})
}
