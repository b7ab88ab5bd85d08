package proxy

import (
	"bytes"
	"strings"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Bounds of what is kept of an event.
const (
	maxEventData = 64 << 10
	maxEventType = 128
)

// scanner cuts a stream into events as its bytes come, in pieces of any size. It keeps no more of an event than
// maxEventData, and changes no byte.
type scanner struct {
	grammar *grammar
	types   *fieldScan
	// line is the beginning of a line whose end has not come yet.
	line []byte
	// name and data of the event so far.
	name    []byte
	data    []byte
	hasData bool
	// cut is true when not all of the event was kept.
	cut bool
	// skipLF: the line before ended in CR, and an LF behind it belongs to it.
	skipLF bool
	// begun is true once a line was seen: before, a byte order mark is skipped.
	begun bool
	// passive is the reason why the scanner gave up; empty while it works.
	passive string
}

// event of a stream. Its data are valid until the next call.
type event struct {
	kind string
	data []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func newScanner(g *grammar) *scanner {
	s := &scanner{grammar: g}
	if g.typePointer != nil {
		s.types = newFieldScan([]pointer{g.typePointer}, nil)
	}
	return s
}

// readable reports whether the grammar can read a body of this type and encoding; the reason says why not, and is empty
// when there is no stream at all.
func (g *grammar) readable(contentType, encoding string) (ok bool, reason string) {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	var stream bool
	switch g.framing {
	case providerv1.Framing_FRAMING_SSE:
		stream = kind == "text/event-stream"
	case providerv1.Framing_FRAMING_JSON_LINES:
		stream = kind == "application/x-ndjson" || kind == "application/jsonl" || kind == "application/json-lines"
	}
	switch {
	case !stream && kind == "text/event-stream":
		return false, "unknown_framing"
	case !stream:
		return false, ""
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return false, "unreadable_encoding"
	}
	return true, ""
}

// next reads up to the end of the next event and says how many bytes that took. ok is false when all of p was read and
// the event is not over, or when the scanner is passive.
func (s *scanner) next(p []byte) (n int, e event, ok bool) {
	for n < len(p) && s.passive == "" {
		if s.skipLF {
			s.skipLF = false
			if p[n] == '\n' {
				n++
				continue
			}
		}
		end := lineEnd(p[n:])
		if end < 0 {
			s.keepLine(p[n:])
			return len(p), event{}, false
		}
		line := p[n : n+end]
		if len(s.line) > 0 {
			s.keepLine(line)
			line = s.line
		}
		n += end + 1
		if p[n-1] == '\r' {
			if s.skipLF = true; n < len(p) {
				if p[n] == '\n' {
					n++
				}
				s.skipLF = false
			}
		}
		e, ok = s.takeLine(line)
		s.line = s.line[:0]
		if ok {
			return n, e, true
		}
	}
	return len(p), event{}, false
}

// lineEnd finds the first CR or LF, or -1.
func lineEnd(p []byte) int {
	lf := bytes.IndexByte(p, '\n')
	before := p
	if lf >= 0 {
		before = p[:lf]
	}
	if cr := bytes.IndexByte(before, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func (s *scanner) keepLine(p []byte) {
	if room := maxEventData - len(s.line); len(p) > room {
		p, s.cut = p[:room], true
	}
	s.line = append(s.line, p...)
}

// takeLine adds a line to the event; a line that ends it gives it out.
func (s *scanner) takeLine(line []byte) (event, bool) {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if s.grammar.framing == providerv1.Framing_FRAMING_JSON_LINES {
		if len(bytes.TrimSpace(line)) == 0 {
			return event{}, false
		}
		s.keepData(line)
		return s.dispatch()
	}
	if len(line) == 0 {
		return s.dispatch()
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		s.name = append(s.name[:0], value[:min(len(value), maxEventType+1)]...)
	case "data":
		if s.hasData {
			s.keepData([]byte("\n"))
		}
		s.keepData(value)
	}
	return event{}, false
}

func (s *scanner) keepData(p []byte) {
	s.hasData = true
	if room := maxEventData - len(s.data); len(p) > room {
		p, s.cut = p[:room], true
	}
	s.data = append(s.data, p...)
}

// dispatch ends the event. One without data is none.
func (s *scanner) dispatch() (event, bool) {
	e, hasData, cut := event{kind: string(s.name), data: s.data}, s.hasData, s.cut
	s.name, s.data, s.hasData, s.cut = s.name[:0], s.data[:0], false, false
	if !hasData {
		return event{}, false
	}
	if s.types != nil {
		s.types.reset()
		s.types.feed(e.data)
		if kind := s.types.values[0]; kind.ok {
			e.kind = kind.value
		} else if cut && e.kind == "" {
			s.passive = "oversized_event"
			return event{}, false
		}
	}
	return e, true
}
