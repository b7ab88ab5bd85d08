package proxy

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scanAll feeds a stream in pieces of the given sizes and gives "type:data" of its events.
func scanAll(t testing.TB, s *scanner, body []byte, sizes ...int) []string {
	t.Helper()
	var events []string
	for i := 0; len(body) > 0; i++ {
		n := min(max(sizes[i%len(sizes)], 1), len(body))
		piece := body[:n]
		for len(piece) > 0 {
			read, e, ok := s.next(piece)
			if read < 1 || read > len(piece) {
				t.Fatalf("read %d of %d bytes", read, len(piece))
			}
			piece = piece[read:]
			if ok {
				events = append(events, e.kind+":"+string(e.data))
			}
		}
		body = body[n:]
	}
	return events
}

func sseScanner(t testing.TB) *scanner {
	return newScanner(&compiled(t, "claude", claudeProfile()).grammar)
}

func TestStreamsAreCutIntoEvents(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"name and data", "event: a\ndata: 1\n\n", "[a:1]"},
		{"data alone", "data: 1\n\n", "[:1]"},
		{"a name alone is no event", "event: a\n\n", "[]"},
		{"and does not name the next", "event: a\n\ndata: 1\n\n", "[:1]"},
		{"no blank behind the colon", "event:a\ndata:1\n\n", "[a:1]"},
		{"one blank is taken away", "data:  1\n\n", "[: 1]"},
		{"lines of data are joined", "data: 1\ndata\ndata: 2\n\n", "[:1\n\n2]"},
		{"comments are nothing", ": a\n\n:\n\n", "[]"},
		{"unknown fields are nothing", "id: 1\nretry: 2\nfoo\ndata: 1\n\n", "[:1]"},
		{"the data's type wins", "event: a\ndata: {\"type\":\"b\"}\n\n", "[b:{\"type\":\"b\"}]"},
		{"a type that is no string is none", "event: a\ndata: {\"type\":{}}\n\n", "[a:{\"type\":{}}]"},
		{"a byte order mark is skipped", "\xef\xbb\xbfevent: a\ndata: 1\n\n", "[a:1]"},
		{"but only the first", "data: 1\n\n\xef\xbb\xbfdata: 2\n\n", "[:1]"},
		{"an event without its end is none", "data: 1\n", "[]"},
		{"carriage returns", "event: a\rdata: 1\r\rdata: 2\r\r", "[a:1 :2]"},
		{"both", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", "[a:1 :2]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.body); size++ {
				if got := fmt.Sprint(scanAll(t, sseScanner(t), []byte(tt.body), size)); got != tt.want {
					t.Errorf("in pieces of %d: %q, want %q", size, got, tt.want)
				}
			}
		})
	}
}

func TestJSONLinesAreEvents(t *testing.T) {
	declared := claudeProfile()
	declared.Stream.Framing = 3
	s := newScanner(&compiled(t, "claude", declared).grammar)
	got := fmt.Sprint(scanAll(t, s, []byte("{\"type\":\"a\"}\n\n{\"type\":\"b\"}\r\n{}"), 3))
	if want := `[a:{"type":"a"} b:{"type":"b"}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheScannerKeepsABoundedPartOfAnEvent(t *testing.T) {
	huge := strings.Repeat("x", 2<<20)
	tests := []struct {
		name, body, want string
		passive          string
	}{
		{"the type is found in the part that is kept", "data: {\"type\":\"a\",\"text\":\"" + huge + "\"}\n\ndata: 1\n\n", "[a :1]", ""},
		{"the name is enough", "event: a\ndata: {\"text\":\"" + huge + "\"}\n\n", "[a]", ""},
		{"without either it gives up", "data: {\"text\":\"" + huge + "\",\"type\":\"a\"}\n\ndata: 1\n\n", "[]", "oversized_event"},
		{"a line without end costs no memory", huge, "[]", ""},
		{"nor do many lines of one event", strings.Repeat("data: xxxxxxxx\n", 100000), "[]", ""},
		{"nor does a long name", "event: " + huge + "\ndata: 1\n\n", "[" + strings.Repeat("x", maxEventType+1) + ":1]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := sseScanner(t)
			var got []string
			for _, e := range scanAll(t, s, []byte(tt.body), 4096) {
				kind, data, _ := strings.Cut(e, ":")
				if len(data) > maxEventData {
					t.Errorf("%d bytes of data", len(data))
				}
				if len(data) < 100 && !strings.HasPrefix(data, "{") {
					kind = e
				}
				got = append(got, kind)
			}
			if fmt.Sprint(got) != tt.want || s.passive != tt.passive {
				t.Errorf("events %.80v, passive %q, want %.80s, %q", got, s.passive, tt.want, tt.passive)
			}
			if cap(s.line) > 2*maxEventData || cap(s.data) > 2*maxEventData {
				t.Errorf("keeps %d and %d bytes", cap(s.line), cap(s.data))
			}
		})
	}
}

// TestPiecesDoNotMatter holds for any stream: how it is cut into pieces changes no event.
func TestPiecesDoNotMatter(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"event: a", "event: error", "data: 1", `data: {"type":"b"}`, "data", ": comment", "", "", "id: 1", "\xef\xbb\xbf",
	})
	end := rapid.SampledFrom([]string{"\n", "\r", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		var body bytes.Buffer
		for range rapid.IntRange(0, 30).Draw(t, "lines") {
			body.WriteString(line.Draw(t, "line") + end.Draw(t, "end"))
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 8).Draw(t, "sizes")
		want := fmt.Sprint(collect(body.Bytes(), body.Len()))
		if got := fmt.Sprint(collect(body.Bytes(), sizes...)); got != want {
			t.Fatalf("in pieces of %v: %q, want %q as in one", sizes, got, want)
		}
	})
}

// collect is scanAll without a test to fail.
func collect(body []byte, sizes ...int) []string {
	g, err := compileGrammar(claudeProfile().GetStream())
	if err != nil {
		return []string{err.Error()}
	}
	s := newScanner(&g)
	var events []string
	for i := 0; len(body) > 0; i++ {
		n := min(max(sizes[i%len(sizes)], 1), len(body))
		for piece := body[:n]; len(piece) > 0; {
			read, e, ok := s.next(piece)
			piece = piece[read:]
			if ok {
				events = append(events, e.kind+":"+string(e.data))
			}
		}
		body = body[n:]
	}
	return events
}

func FuzzScanner(f *testing.F) {
	entries, err := os.ReadDir("testdata/hostile/sse")
	if err != nil {
		f.Fatal(err)
	}
	for _, entry := range entries {
		if body := sseFixture(f, entry.Name()); len(body) < 4096 {
			f.Add(body, 3)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		size = min(max(size, 1), len(body)+1)
		want, got := fmt.Sprint(collect(body, len(body)+1)), fmt.Sprint(collect(body, size))
		if got != want {
			t.Errorf("in pieces of %d: %q, want %q", size, got, want)
		}
	})
}
