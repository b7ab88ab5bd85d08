package simulation

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func traces(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/traces/*.jsonl")
	if err != nil || len(files) != 25 {
		t.Fatalf("%d traces: %v", len(files), err)
	}
	return files
}

func TestTracesGiveTheirDecisions(t *testing.T) {
	for _, file := range traces(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			trace, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			result, err := Run(bytes.NewReader(trace), &out, Options{})
			if err != nil {
				t.Fatal(err)
			}
			expected := bytes.Count(trace, []byte(`"ev":"decision"`))
			if result.Decisions != expected || result.Differing != 0 {
				t.Errorf("%d decisions of %d, %d differ\n%s", result.Decisions, expected, result.Differing, &out)
			}
		})
	}
}

func TestServingAnswersAsAReplayDoes(t *testing.T) {
	for _, file := range traces(t) {
		trace, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var replayed, served bytes.Buffer
		if _, err := Run(bytes.NewReader(trace), &replayed, Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(bytes.NewReader(trace), &served, Options{Serve: true}); err != nil {
			t.Fatal(err)
		}
		if replayed.String() != served.String() {
			t.Errorf("%s: answers differ", file)
		}
	}
}

func TestServeAnswersBeforeItReadsOn(t *testing.T) {
	trace, err := os.ReadFile("testdata/traces/01-abc-first.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(trace), `{"ev":"decision"`)
	answers := make(chan string, 1)
	hold := make(chan struct{})
	in := &held{Reader: strings.NewReader(head), hold: hold}
	done := make(chan error)
	go func() {
		_, err := Run(in, writer(func(p []byte) { answers <- string(p) }), Options{Serve: true})
		done <- err
	}()
	if a := <-answers; !strings.Contains(a, `"account":"A"`) {
		t.Errorf("answer = %s", a)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// held is a reader that blocks at its end until hold is closed.
type held struct {
	*strings.Reader
	hold chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if h.Len() == 0 {
		<-h.hold
	}
	return h.Reader.Read(p)
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(bytes.Clone(p))
	return len(p), nil
}

func TestWrongExpectationsAreSeen(t *testing.T) {
	trace, err := os.ReadFile("testdata/traces/01-abc-first.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"another account": {`"account":"A","req":1`, `"account":"B","req":1`},
		"another way":     {`"how":"known"`, `"how":"cautious"`},
		"another score":   {`4.248638`, `4.250`},
	} {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(string(trace), edit[0], edit[1], 1)
			result, err := Run(strings.NewReader(edited), &bytes.Buffer{}, Options{})
			if err != nil || result.Differing != 1 {
				t.Errorf("%d differ: %v", result.Differing, err)
			}
		})
	}
}

func TestBadTracesAreRefusedWithTheLine(t *testing.T) {
	const hello = `{"ev":"hello","v":1}` + "\n"
	for name, c := range map[string]struct{ trace, want string }{
		"not JSON":                       {hello + "{", "line 2"},
		"an unknown event":               {hello + `{"ev":"account","t":1,"account":"A","windows":[{"id":"w","dur_ms":18000000}]}` + "\n" + `{"ev":"arrival","t":1,"req":1,"session":"s","model":"m"}` + "\n" + `{"ev":"teleported","t":1,"req":1}`, "line 4"},
		"an unknown event of no request": {hello + `{"ev":"acepted","t":1,"req":9}`, "acepted"},
		"a newer trace":                  {`{"ev":"hello","v":2}`, "version 2"},
		"telemetry of nobody":            {hello + `{"ev":"telemetry","t":1,"account":"X"}`, "unknown account"},
		"an endless line":                {hello + strings.Repeat(" ", maxLine+1), "too long"},
		"an unknown rejection":           {hello + `{"ev":"account","t":1,"account":"A","windows":[]}` + "\n" + `{"ev":"arrival","t":1,"req":1,"session":"s","model":"m"}` + "\n" + `{"ev":"rejected","t":1,"req":1,"class":"mood"}`, "mood"},
		"a nameless account":             {hello + `{"ev":"account","t":1}`, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(strings.NewReader(c.trace), &bytes.Buffer{}, Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestDecisionsBeforeABadLineArePrinted(t *testing.T) {
	trace, err := os.ReadFile("testdata/traces/01-abc-first.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var good, bad bytes.Buffer
	want, err := Run(bytes.NewReader(trace), &good, Options{})
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(strings.TrimSpace(string(trace)), "\n")
	result, err := Run(strings.NewReader(string(trace[:end])+"\nnonsense"), &bad, Options{})
	if err == nil || result != want || bad.String() != good.String() {
		t.Errorf("result %+v, want %+v, error %v, printed\n%s", result, want, err, &bad)
	}
}

func TestExplanationsAreComments(t *testing.T) {
	trace, err := os.ReadFile("testdata/traces/01-abc-first.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Run(bytes.NewReader(trace), &out, Options{Explain: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 5 {
		t.Fatalf("output:\n%s", &out)
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "#") {
			t.Errorf("line %q is no comment", line)
		}
	}
	if !strings.Contains(out.String(), "Goes to trace/A: the greatest score of 2 accounts, 4.249") {
		t.Errorf("output:\n%s", &out)
	}
}
