package state

import (
	"math"
	"strconv"
)

// A snapshot is bindings nearly to the last byte, and a journal too. Those that hold nothing unusual are read and written
// here, in exactly the JSON that encoding/json reads and writes, at a fraction of the cost; all others are left to it.

// scanBinding reads a binding in the form in which nearly all are written: fields in their order, texts of plain ASCII, no
// moves. What it takes means the same to encoding/json, which is left to read the others, and takes ten times as long.
func scanBinding(data []byte, known words) (*bindingRow, bool) {
	s := scan{rest: data}
	session := s.text(`{"session":`)
	if session == nil {
		return nil, false
	}
	row := &bindingRow{
		Session:       string(session),
		Model:         known.text(s.text(`,"model":`)),
		Account:       known.text(s.text(`,"account":`)),
		BoundAt:       s.time(`,"bound_at":`),
		LastUsed:      s.time(`,"last_used":`),
		BoundBy:       BoundBy(known.text(s.text(`,"by":`))),
		Cause:         known.text(s.text(`,"cause":`)),
		Cadence:       s.decimal(`,"cadence":`),
		BoundSequence: s.number(`,"bound_sequence":`),
		Sequence:      s.number(`,"sequence":`),
	}
	return row, !s.failed && string(s.rest) == "}"
}

// appendBinding appends what marshal makes of the row. ok is false for one that is left to it.
func appendBinding(line []byte, r *bindingRow) (_ []byte, ok bool) {
	ok = len(r.Moves) == 0 && plainDecimal(r.Cadence)
	for _, text := range []string{r.Session, r.Model, r.Account, string(r.BoundBy), r.Cause} {
		ok = ok && plainText(text)
	}
	if !ok {
		return line, false
	}
	line = append(append(line, `{"session":"`...), r.Session...)
	if r.Model != "" {
		line = append(append(line, `","model":"`...), r.Model...)
	}
	line = append(append(line, `","account":"`...), r.Account...)
	line, errBound := r.BoundAt.AppendText(append(line, `","bound_at":"`...))
	line, errUsed := r.LastUsed.AppendText(append(line, `","last_used":"`...))
	line = append(append(line, `","by":"`...), r.BoundBy...)
	if r.Cause != "" {
		line = append(append(line, `","cause":"`...), r.Cause...)
	}
	line = append(line, '"')
	if r.Cadence != 0 {
		line = strconv.AppendFloat(append(line, `,"cadence":`...), r.Cadence, 'f', -1, 64)
	}
	if r.BoundSequence != 0 {
		line = strconv.AppendUint(append(line, `,"bound_sequence":`...), r.BoundSequence, 10)
	}
	if r.Sequence != 0 {
		line = strconv.AppendUint(append(line, `,"sequence":`...), r.Sequence, 10)
	}
	return append(line, '}'), errBound == nil && errUsed == nil
}

// plain characters stand for themselves in JSON.
func plain(c byte) bool { return ' ' <= c && c <= '~' && c != '"' && c != '\\' }

func plainText(s string) bool {
	for i := range len(s) {
		if !plain(s[i]) {
			return false
		}
	}
	return true
}

// plainDecimal numbers are written without an exponent.
func plainDecimal(f float64) bool {
	return f == 0 || 1e-6 <= math.Abs(f) && math.Abs(f) < 1e21
}

// words lets rows that are read share the few texts that many of them hold.
type words map[string]string

func (w words) text(text []byte) string {
	if known, ok := w[string(text)]; ok {
		return known
	}
	known := string(text)
	w[known] = known
	return known
}
