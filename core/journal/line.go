package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
)

// MaxLineBytes bounds one line of a journal, newline included.
const MaxLineBytes = 64 << 10

// MaxEntryBytes bounds an entry; the rest of a line is for its checksum, sequence and type.
const MaxEntryBytes = MaxLineBytes - 128

// maxSequence keeps sequences exact in every JSON reader, and far from overflow.
const maxSequence = 1 << 53

const crcDigits = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // read only

type lineType string

const (
	beginLine lineType = "begin"
	entryLine lineType = "entry"
	endLine   lineType = "end"
)

// line is one line of a journal, decoded. The body aliases the bytes it was decoded from.
type line struct {
	sequence uint64
	kind     lineType
	body     []byte
}

// begin is the body of a journal's first line.
type begin struct {
	Format     uint64 `json:"format"`
	Log        string `json:"log"`
	Generation uint64 `json:"generation"`
}

// lineCheck is the running checksum every line of one journal starts from, its first line aside.
func lineCheck(log string, generation uint64) uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%s/%d/", log, generation), castagnoli)
}

// appendLine appends the encoded line, newline included.
func appendLine(to []byte, check uint32, l line) []byte {
	start := len(to)
	to = append(to, "00000000 "...)
	object := len(to)
	to = append(to, `{"sequence":`...)
	to = strconv.AppendUint(to, l.sequence, 10)
	to = append(to, `,"type":"`...)
	to = append(to, l.kind...)
	to = append(to, `","body":`...)
	to = append(to, l.body...)
	to = append(to, '}')
	putCRC(to[start:], crc32.Update(check, castagnoli, to[object:]))
	return append(to, '\n')
}

func appendBegin(to []byte, b begin) []byte {
	body := fmt.Appendf(nil, `{"format":%d,"log":%q,"generation":%d}`, b.Format, b.Log, b.Generation)
	return appendLine(to, 0, line{kind: beginLine, body: body})
}

func putCRC(to []byte, crc uint32) {
	const digits = "0123456789abcdef"
	for i := crcDigits - 1; i >= 0; i-- {
		to[i] = digits[crc&0xf]
		crc >>= 4
	}
}

// parseCRC reads eight lower-case hexadecimal digits; other spellings of the same number are damage.
func parseCRC(from []byte) (uint32, bool) {
	if len(from) != crcDigits {
		return 0, false
	}
	var crc uint32
	for _, c := range from {
		switch {
		case c >= '0' && c <= '9':
			crc = crc<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			crc = crc<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return crc, true
}

// parseLine decodes a line without its newline. Only the exact form that appendLine writes is accepted.
func parseLine(check uint32, raw []byte) (line, bool) {
	if len(raw) > MaxLineBytes-1 || len(raw) < crcDigits+1 || raw[crcDigits] != ' ' {
		return line{}, false
	}
	want, ok := parseCRC(raw[:crcDigits])
	object := raw[crcDigits+1:]
	if !ok || crc32.Update(check, castagnoli, object) != want {
		return line{}, false
	}
	return parseObject(object)
}

func parseObject(object []byte) (line, bool) {
	rest, ok := bytes.CutPrefix(object, []byte(`{"sequence":`))
	if !ok {
		return line{}, false
	}
	number, rest, ok := bytes.Cut(rest, []byte(`,"type":"`))
	if !ok {
		return line{}, false
	}
	kind, rest, ok := bytes.Cut(rest, []byte(`","body":`))
	if !ok {
		return line{}, false
	}
	body, ok := bytes.CutSuffix(rest, []byte{'}'})
	if !ok || !isObject(body) {
		return line{}, false
	}
	sequence, ok := parseNumber(number)
	if !ok {
		return line{}, false
	}
	l := line{sequence: sequence, kind: lineType(kind), body: body}
	switch l.kind {
	case beginLine:
		return l, sequence == 0
	case entryLine:
		return l, sequence > 0
	case endLine:
		return l, true
	}
	return line{}, false
}

// parseNumber reads a decimal number up to maxSequence without sign or leading zeros.
func parseNumber(text []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > maxSequence || (len(text) > 1 && text[0] == '0') {
		return 0, false
	}
	return n, true
}

// parseBegin decodes a journal's first line. It reads any format, for the caller to judge.
func parseBegin(raw []byte) (begin, bool) {
	l, ok := parseLine(0, raw)
	if !ok || l.kind != beginLine {
		return begin{}, false
	}
	var b begin
	if err := json.Unmarshal(l.body, &b); err != nil || b.Format == 0 {
		return begin{}, false
	}
	return b, true
}

// isObject tells whether the bytes are one JSON object on one line.
func isObject(body []byte) bool {
	return len(body) > 0 && body[0] == '{' && bytes.IndexByte(body, '\n') < 0 && json.Valid(body)
}
