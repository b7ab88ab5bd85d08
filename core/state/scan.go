package state

import (
	"bytes"
	"strconv"
	"time"
)

// scan takes fields from the beginning of what is left of a JSON object. A field that is not there is zero, as in
// encoding/json; one that is not in the expected form is left where it is, so that the end is never reached.
type scan struct {
	rest   []byte
	failed bool // a value was taken that cannot be read
}

func (s *scan) text(field string) []byte {
	if len(s.rest) <= len(field) || string(s.rest[:len(field)]) != field || s.rest[len(field)] != '"' {
		return nil
	}
	value := s.rest[len(field)+1:]
	for i, c := range value {
		switch {
		case c == '"':
			s.rest = value[i+1:]
			return value[:i]
		case !plain(c):
			return nil
		}
	}
	return nil
}

func (s *scan) time(field string) (t time.Time) {
	if text := s.text(field); text != nil && t.UnmarshalText(text) != nil {
		s.failed = true
	}
	return t
}

func (s *scan) number(field string) uint64 {
	digits := s.digits(field)
	if digits == nil {
		return 0
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	s.failed = s.failed || err != nil
	return n
}

// decimal reads a number without an exponent.
func (s *scan) decimal(field string) float64 {
	digits := s.digits(field)
	if digits == nil {
		return 0
	}
	if fraction := fraction(s.rest); fraction > 0 {
		digits, s.rest = digits[:len(digits)+fraction], s.rest[fraction:]
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	s.failed = s.failed || err != nil
	return f
}

// digits takes a number without a leading zero.
func (s *scan) digits(field string) []byte {
	value, ok := bytes.CutPrefix(s.rest, []byte(field))
	n := countDigits(value)
	if !ok || n == 0 || n > 1 && value[0] == '0' {
		return nil
	}
	s.rest = value[n:]
	return value[:n]
}

// fraction is the length of a point with digits after it.
func fraction(text []byte) int {
	if len(text) == 0 || text[0] != '.' {
		return 0
	}
	if n := countDigits(text[1:]); n > 0 {
		return 1 + n
	}
	return 0
}

func countDigits(text []byte) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}
