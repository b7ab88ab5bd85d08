package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of the field scan.
const (
	maxPointers      = 64
	maxPointerTokens = 8
	maxPointerBytes  = 256
	maxScanDepth     = 512
	maxFieldBytes    = 16 << 10
	maxKeyBytes      = 256
)

// pointer is a JSON pointer (RFC 6901), cut into its tokens.
type pointer []string

func compilePointer(s string) (pointer, error) {
	if len(s) > maxPointerBytes || !strings.HasPrefix(s, "/") {
		return nil, fmt.Errorf("must begin with / and have at most %d bytes", maxPointerBytes)
	}
	tokens := strings.Split(s[1:], "/")
	if len(tokens) > maxPointerTokens {
		return nil, fmt.Errorf("must have at most %d parts", maxPointerTokens)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, token := range tokens {
		bare := strings.NewReplacer("~1", "", "~0", "").Replace(token)
		if strings.Contains(bare, "~") {
			return nil, errors.New("~ must be followed by 0 or 1")
		}
		tokens[i] = unescape.Replace(token)
	}
	return tokens, nil
}

// fieldScan finds the scalar values at a few pointers in a JSON document that is fed piece by piece, and skips
// everything else. It does not validate: a document that is no JSON gives no fields, or fewer. The first value at a
// pointer counts. Its memory does not grow with the document.
//
// It is our own because of what a request of 2 MB costs: a parse makes it 9 to 12 times as dear, a token reader still
// looks at every token, and libraries that skip want the document in one piece, which a body in pooled pieces or behind a
// decoder is not.
type fieldScan struct {
	wanted []pointer
	values []field
	// enough is asked after each value found; nil: until all are found.
	enough func() bool

	state  scanState
	frames []scanFrame
	// live has a bit for each pointer that the value to come can lie on, target for each that ends there.
	live, target uint64
	// skipped counts the open containers of a value that no pointer leads into.
	skipped int
	// escaped: the last byte of the piece before was a backslash inside a string.
	escaped bool
	key     bool
	text    []byte
	tooLong bool
	missing int
}

// field is a value that was found: unescaped, numbers and booleans as they are written.
type field struct {
	value string
	ok    bool
}

// scanFrame is an open container that pointers lead into.
type scanFrame struct {
	array bool
	index int
	live  uint64
}

type scanState uint8

const (
	scanValue scanState = iota
	scanFirstKey
	scanKey
	scanColon
	scanAfter
	scanString
	scanLiteral
	scanSkip
	scanSkipString
	scanEnd
)

func newFieldScan(wanted []pointer, enough func() bool) *fieldScan {
	s := &fieldScan{wanted: wanted, values: make([]field, len(wanted)), enough: enough}
	s.reset()
	return s
}

// reset makes the scan ready for another document.
func (s *fieldScan) reset() {
	clear(s.values)
	s.missing = len(s.wanted)
	s.state, s.frames, s.text = scanValue, s.frames[:0], s.text[:0]
	s.live, s.target = 1<<len(s.wanted)-1, 0
	s.skipped, s.escaped, s.key, s.tooLong = 0, false, false, false
}

// scanBytes scans a whole document.
func scanBytes(document []byte, wanted ...pointer) []field {
	s := newFieldScan(wanted, nil)
	s.feed(document)
	s.finish()
	return s.values
}

// all scans a document that comes in pieces, no further than needed.
func (s *fieldScan) all(pieces func(yield func([]byte) bool)) {
	for piece := range pieces {
		if !s.feed(piece) {
			break
		}
	}
	s.finish()
}

// feed takes the next piece and reports whether more is wanted.
func (s *fieldScan) feed(p []byte) bool {
	for len(p) > 0 && s.state != scanEnd {
		switch s.state {
		case scanString, scanSkipString:
			p = s.inString(p)
		case scanSkip:
			p = s.skip(p)
		case scanLiteral:
			p = s.inLiteral(p)
		default:
			s.structure(p[0])
			p = p[1:]
		}
	}
	return s.state != scanEnd
}

// finish ends the document: a number at its end has no other sign of being over.
func (s *fieldScan) finish() {
	if s.state == scanLiteral {
		s.found(string(s.text))
	}
	s.state = scanEnd
}

// structure takes one byte outside of strings, literals and skipped values.
func (s *fieldScan) structure(c byte) {
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return
	}
	switch s.state {
	case scanValue:
		s.beginValue(c)
	case scanFirstKey, scanKey:
		switch {
		case c == '"':
			s.beginText(true)
		case c == '}' && s.state == scanFirstKey:
			s.closeFrame(false)
		default:
			s.state = scanEnd
		}
	case scanColon:
		s.state = scanValue
		if c != ':' {
			s.state = scanEnd
		}
	case scanAfter:
		s.afterValue(c)
	}
}

func (s *fieldScan) beginValue(c byte) {
	switch {
	case c == '"' && s.target != 0:
		s.beginText(false)
	case c == '"':
		s.state = scanSkipString
	case c == '{' || c == '[':
		s.open(c == '[')
	case c == ']' && len(s.frames) > 0 && s.top().array && s.top().index == 0:
		s.closeFrame(true)
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
		s.state, s.text, s.tooLong = scanLiteral, append(s.text[:0], c), false
	default:
		s.state = scanEnd
	}
}

func (s *fieldScan) beginText(key bool) {
	s.state, s.key, s.text, s.tooLong = scanString, key, s.text[:0], false
}

// open enters a container that a pointer leads into, and skips any other.
func (s *fieldScan) open(array bool) {
	inside := s.live &^ s.target
	if inside == 0 {
		s.state, s.skipped = scanSkip, 1
		return
	}
	s.frames = append(s.frames, scanFrame{array: array, live: inside})
	if array {
		s.state = scanValue
		s.narrow("0")
		return
	}
	s.state = scanFirstKey
}

func (s *fieldScan) top() *scanFrame { return &s.frames[len(s.frames)-1] }

// narrow narrows the pointers down to those that go on with token.
func (s *fieldScan) narrow(token string) {
	depth, in := len(s.frames)-1, s.top().live
	s.live, s.target = 0, 0
	for i, p := range s.wanted {
		bit := uint64(1) << i
		if in&bit == 0 || len(p) <= depth || p[depth] != token || s.values[i].ok {
			continue
		}
		s.live |= bit
		if len(p) == depth+1 {
			s.target |= bit
		}
	}
}

func (s *fieldScan) afterValue(c byte) {
	if len(s.frames) == 0 {
		s.state = scanEnd
		return
	}
	frame := s.top()
	switch {
	case c == ',' && frame.array:
		frame.index++
		s.narrow(strconv.Itoa(frame.index))
		s.state = scanValue
	case c == ',':
		s.state = scanKey
	case c == ']' && frame.array, c == '}' && !frame.array:
		s.closeFrame(frame.array)
	default:
		s.state = scanEnd
	}
}

func (s *fieldScan) closeFrame(array bool) {
	if s.top().array != array {
		s.state = scanEnd
		return
	}
	s.frames = s.frames[:len(s.frames)-1]
	s.valueEnded()
}

// valueEnded goes on behind a value.
func (s *fieldScan) valueEnded() {
	s.state = scanAfter
	if len(s.frames) == 0 {
		s.state = scanEnd
	}
}

// inString goes to the end of a string, and keeps it unless it is skipped.
func (s *fieldScan) inString(p []byte) []byte {
	end := s.stringEnd(p)
	body := p
	if end >= 0 {
		body = p[:end]
	}
	if s.state == scanString {
		s.keep(body)
	}
	if end < 0 {
		return nil
	}
	switch {
	case s.state == scanSkipString && s.skipped > 0:
		s.state = scanSkip
	case s.state == scanSkipString:
		s.valueEnded()
	case s.key:
		s.state = scanColon
		s.narrow(s.unescaped())
	case s.tooLong:
		s.valueEnded()
	default:
		s.found(s.unescaped())
	}
	return p[end+1:]
}

// stringEnd finds the closing quote, or -1.
func (s *fieldScan) stringEnd(p []byte) int {
	at := 0
	if s.escaped {
		s.escaped, at = false, 1
	}
	quote := -1
	for at <= len(p) {
		if quote < at {
			if quote = bytes.IndexByte(p[at:], '"'); quote >= 0 {
				quote += at
			} else {
				quote = len(p)
			}
		}
		slash := bytes.IndexByte(p[at:quote], '\\')
		if slash < 0 {
			break
		}
		at += slash + 2
	}
	switch {
	case at > len(p):
		// The piece ends behind a backslash.
		s.escaped = true
		return -1
	case quote == len(p):
		return -1
	}
	return quote
}

func (s *fieldScan) keep(p []byte) {
	limit := maxFieldBytes
	if s.key {
		limit = maxKeyBytes
	}
	if len(s.text)+len(p) > limit {
		s.tooLong = true
	}
	if !s.tooLong {
		s.text = append(s.text, p...)
	}
}

// unescaped is the kept string; a NUL, which no pointer names, when it was too long or is no string.
func (s *fieldScan) unescaped() string {
	if s.tooLong {
		return "\x00"
	}
	if bytes.IndexByte(s.text, '\\') < 0 {
		return string(s.text)
	}
	var out string
	quoted := append(append([]byte{'"'}, s.text...), '"')
	if json.Unmarshal(quoted, &out) != nil {
		return "\x00"
	}
	return out
}

// inLiteral goes to the end of a number, true, false or null.
func (s *fieldScan) inLiteral(p []byte) []byte {
	for i, c := range p {
		if c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			s.keep(p[:i])
			if s.tooLong || string(s.text) == "null" {
				s.valueEnded()
			} else {
				s.found(string(s.text))
			}
			return p[i:]
		}
	}
	s.keep(p)
	return nil
}

// found stores the value for the pointers that end here.
func (s *fieldScan) found(value string) {
	s.valueEnded()
	if s.target == 0 {
		return
	}
	for i := range s.wanted {
		if s.target&(1<<i) != 0 && !s.values[i].ok {
			s.values[i] = field{value: value, ok: true}
			s.missing--
		}
	}
	s.target = 0
	if s.missing == 0 || s.enough != nil && s.enough() {
		s.state = scanEnd
	}
}

// skip goes on through a container that no pointer leads into.
func (s *fieldScan) skip(p []byte) []byte {
	for i, c := range p {
		switch c {
		case '"':
			s.state = scanSkipString
			return p[i+1:]
		case '{', '[':
			if s.skipped++; s.skipped > maxScanDepth {
				s.state = scanEnd
				return nil
			}
		case '}', ']':
			if s.skipped--; s.skipped == 0 {
				s.valueEnded()
				return p[i+1:]
			}
		}
	}
	return nil
}
