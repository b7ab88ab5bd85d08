package plugin

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/events"
)

func newTestOutput(w io.Writer) *output {
	return newOutput(hclog.New(&hclog.LoggerOptions{Output: w, Level: hclog.Trace}), events.NewRedactor())
}

func quoted(b []byte) string {
	raw, _ := json.Marshal(string(b))
	return string(raw)
}

func TestLineOfAnAdapterIsLoggedHarmless(t *testing.T) {
	cases := []struct{ name, line, want, not string }{
		{"plain text is its own message", "hello there", "hello there", ""},
		{"level, message and pairs of hclog's form are kept", `{"@level":"warn","@message":"slow","@module":"x","ms":12}`, "[WARN]  slow: ms=12", "module"},
		{"a message that is no text does not panic", `{"@message": 1}`, `{"@message": 1}`, ""},
		{"a level that is no text does not panic", `{"@level": {}, "@message": "m"}`, "m", ""},
		{"a timestamp that is none does not matter", `{"@level":"info","@message":"m","@timestamp":[1]}`, "m", "timestamp"},
		{"a credential is taken out", "token sk-ant-oat01-CANARYaaaa0001MADEUPMADEUPMADEUP-AA end", "end", "CANARY"},
		{"a value is a credential by its key", `{"@level":"info","@message":"m","access_token":"abcdefghij"}`, "access_token", "abcdefghij"},
		{"a credential is found in a pair", `{"@level":"info","@message":"m","k":"Bearer abcdefghijkl"}`, "k=", "abcdefghijkl"},
		{"nested values stay on one line", `{"@level":"info","@message":"m","k":{"a":"x\ny"}}`, "k=", "\ny"},
		{"escapes do not pass", "a\x1b[2Jb", "a?[2Jb", "\x1b"},
		{"a long line loses its last word, which may be half a credential", strings.Repeat("word ", 2000) + "sk-ant", "word", "sk-ant"},
		{"a long word is not shown", strings.Repeat("x", 10000), "[long line]", "xxx"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log := &syncBuffer{}
			newTestOutput(log).drain(strings.NewReader(c.line + "\n"))
			got := log.String()
			if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("logged %.300q, want %q in it and %q not", got, c.want, c.not)
			}
			if strings.Count(got, "\n") != 1 {
				t.Errorf("logged %d lines, want one: %q", strings.Count(got, "\n"), got)
			}
		})
	}
}

func TestLinesOverTheRateAreCountedAndSaid(t *testing.T) {
	log := &syncBuffer{}
	out := newTestOutput(log)
	out.drain(strings.NewReader(strings.Repeat("line\n", 3*linesBurst)))
	shown := strings.Count(log.String(), "line\n")
	if dropped := out.droppedLines(); int(dropped)+shown != 3*linesBurst || shown < linesBurst {
		t.Errorf("%d shown, %d dropped of %d", shown, dropped, 3*linesBurst)
	}
	out.bucket.last = time.Now().Add(-time.Second)
	out.drain(strings.NewReader("after\n"))
	if !strings.Contains(log.String(), "lines of the adapter dropped: lines=") {
		t.Error("nothing said about dropped lines")
	}
}

func TestBucketRefillsAtTheRateUpToTheBurst(t *testing.T) {
	start := time.Unix(1000, 0)
	b := bucket{tokens: linesBurst}
	for range linesBurst {
		if !b.take(start) {
			t.Fatal("burst refused")
		}
	}
	if b.take(start) {
		t.Fatal("more than the burst admitted")
	}
	admitted := 0
	for range 300 {
		if b.take(start.Add(time.Second)) {
			admitted++
		}
	}
	if admitted != linesPerSecond {
		t.Errorf("%d lines admitted a second later, want %d", admitted, linesPerSecond)
	}
	b.take(start.Add(time.Hour))
	if b.tokens > linesBurst {
		t.Errorf("%v tokens after an hour, want at most %d", b.tokens, linesBurst)
	}
}

func TestOnlyTheLastLinesAreKeptForADiagnosis(t *testing.T) {
	out := newTestOutput(io.Discard)
	for i := range 20 {
		out.line([]byte(strings.Repeat("z", i+1)), false)
	}
	last := out.lastLines()
	if len(last) != keptLines || len(last[keptLines-1]) != 20 {
		t.Errorf("kept %d lines, the last of %d bytes", len(last), len(last[len(last)-1]))
	}
}
