package plugin

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/printable"
)

// Bounds of what an adapter may write.
const (
	lineBytes      = 8 << 10 // of one line; the rest of it is read and dropped
	linesPerSecond = 100
	linesBurst     = 500
	keptLines      = 8 // for diagnoses
	keptLineBytes  = 300
	logTextBytes   = 2 << 10
	logPairs       = 16
)

// output takes what an adapter writes to its pipes, makes it harmless and logs it. Its readers never stop before the end
// of the pipe, so that a writer is never blocked. It outlives processes, so that the rate cannot be evaded by crashing.
type output struct {
	logger   hclog.Logger
	redactor *events.Redactor

	mu      sync.Mutex // guards below
	bucket  bucket
	unsaid  uint64 // lines dropped since the last word about it
	dropped uint64
	last    []string
}

func newOutput(logger hclog.Logger, redactor *events.Redactor) *output {
	return &output{logger: logger, redactor: redactor, bucket: bucket{tokens: linesBurst}}
}

// drain reads r to its end, line by line.
func (o *output) drain(r io.Reader) {
	readLines(r, o.line)
}

// readLines reads r to its end and hands over each line without its newline, cut to lineBytes.
func readLines(r io.Reader, take func(line []byte, cut bool)) {
	buffer := make([]byte, 32<<10)
	var line []byte
	cut := false
	for {
		n, err := r.Read(buffer)
		rest := buffer[:n]
		for len(rest) > 0 {
			end := bytes.IndexByte(rest, '\n')
			part := rest
			if end >= 0 {
				part = rest[:end]
			}
			if room := lineBytes - len(line); len(part) > room {
				part, cut = part[:room], true
			}
			line = append(line, part...)
			if end < 0 {
				break
			}
			take(line, cut)
			line, cut, rest = line[:0], false, rest[end+1:]
		}
		if err != nil {
			if len(line) > 0 {
				take(line, cut)
			}
			return
		}
	}
}

// Write takes output that comes through go-plugin's stream instead of a pipe.
func (o *output) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		o.line(bytes.TrimSuffix(line, []byte("\n")), false)
	}
	return len(p), nil
}

func (o *output) line(raw []byte, cut bool) {
	if len(raw) == 0 {
		return
	}
	if cut {
		// A credential cut in two would not be recognized: the last word goes.
		if raw = raw[:bytes.LastIndexAny(raw, " \t\"")+1]; len(raw) == 0 {
			raw = []byte("[long line]")
		}
	}
	unsaid, ok := o.admit(time.Now())
	if !ok {
		return
	}
	if unsaid > 0 {
		o.logger.Warn("lines of the adapter dropped", "lines", unsaid)
	}
	level, message, pairs := o.parse(raw)
	o.keep(message)
	o.logger.Log(level, message, pairs...)
}

// admit reports whether the rate allows one more line, and how many were dropped before it.
func (o *output) admit(now time.Time) (unsaid uint64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.bucket.take(now) {
		o.dropped++
		o.unsaid++
		return 0, false
	}
	unsaid, o.unsaid = o.unsaid, 0
	return unsaid, true
}

func (o *output) keep(message string) {
	message = printable.Line(message, keptLineBytes)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) == keptLines {
		o.last = slices.Delete(o.last, 0, 1)
	}
	o.last = append(o.last, message)
}

// forget drops the last lines when a new process starts.
func (o *output) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = nil
}

func (o *output) lastLines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.last)
}

func (o *output) droppedLines() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

func (o *output) clean(text string, limit int) string {
	return printable.Line(o.redactor.Text(text), limit)
}

// parse reads a line of hclog's JSON form; any other line is its own message.
func (o *output) parse(raw []byte) (level hclog.Level, message string, pairs []any) {
	var entry map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &entry) != nil {
		return hclog.Info, o.clean(string(raw), logTextBytes), nil
	}
	var word string
	if json.Unmarshal(entry["@level"], &word) != nil {
		return hclog.Info, o.clean(string(raw), logTextBytes), nil
	}
	if level = hclog.LevelFromString(word); level == hclog.NoLevel || level == hclog.Off {
		level = hclog.Info
	}
	message = o.value(entry["@message"])
	keys := make([]string, 0, len(entry))
	for key := range entry {
		if !strings.HasPrefix(key, "@") && printable.IsLine(key, 32) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), logPairs)] {
		// The key goes along: "token": "…" is only seen to be a secret with it.
		pairs = append(pairs, key, o.pair(key, entry[key]))
	}
	return level, message, pairs
}

func (o *output) value(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return o.clean(text, logTextBytes)
}

// pair redacts a value in view of its key.
func (o *output) pair(key string, raw json.RawMessage) string {
	value := o.value(raw)
	if prefixed := key + "=" + value; o.redactor.Text(prefixed) != prefixed {
		return events.Redacted
	}
	return value
}

// bucket is a token bucket of lines.
type bucket struct {
	tokens float64
	last   time.Time
}

func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.tokens = min(linesBurst, b.tokens+now.Sub(b.last).Seconds()*linesPerSecond)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
