package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	// Format is the version of the files this package writes.
	Format = 1
	// MaxSnapshotBytes bounds a snapshot's body.
	MaxSnapshotBytes = 64 << 20

	magic = "noria-snapshot"
	// headerBytes is the length of a snapshot's first line, newline included. It is fixed, and padded with spaces before
	// the last checksum, because the line is written after the body whose length and checksum it holds.
	headerBytes = 160
)

// header is the first line of a snapshot.
type header struct {
	format     uint64
	log        string
	generation uint64
	sequence   uint64
	length     uint64
	bodyCRC    uint32
}

func (h header) encode() []byte {
	text := fmt.Appendf(make([]byte, 0, headerBytes), "%s %d %s %d %d %d %08x ",
		magic, h.format, h.log, h.generation, h.sequence, h.length, h.bodyCRC)
	text = append(text, bytes.Repeat([]byte{' '}, headerBytes-crcDigits-1-len(text))...)
	return fmt.Appendf(text, "%08x\n", crc32.Checksum(text, castagnoli))
}

// snapshotFormat reads the format from the first line of a snapshot of any version; ok is false when the line is damaged.
func snapshotFormat(text []byte) (format uint64, ok bool) {
	first, _, ok := bytes.Cut(text, []byte{'\n'})
	if !ok || len(first) < crcDigits {
		return 0, false
	}
	covered, check := first[:len(first)-crcDigits], first[len(first)-crcDigits:]
	want, ok := parseCRC(check)
	if !ok || crc32.Checksum(covered, castagnoli) != want {
		return 0, false
	}
	words := bytes.Fields(covered)
	if len(words) < 2 || string(words[0]) != magic {
		return 0, false
	}
	format, ok = parseNumber(words[1])
	return format, ok && format > 0
}

// parseHeader reads the first line of a snapshot of this package's format.
func parseHeader(text []byte) (header, bool) {
	if len(text) < headerBytes || text[headerBytes-1] != '\n' {
		return header{}, false
	}
	format, ok := snapshotFormat(text[:headerBytes])
	if !ok || format != Format {
		return header{}, false
	}
	words := bytes.Fields(text[:headerBytes-crcDigits-1])
	if len(words) != 7 || !isLogID(string(words[2])) {
		return header{}, false
	}
	h := header{format: format, log: string(words[2])}
	for i, to := range []*uint64{&h.generation, &h.sequence, &h.length} {
		if *to, ok = parseNumber(words[3+i]); !ok {
			return header{}, false
		}
	}
	h.bodyCRC, ok = parseCRC(words[6])
	return h, ok && h.length <= MaxSnapshotBytes
}

// parseSnapshot checks a whole snapshot and returns its header and body.
func parseSnapshot(text []byte) (header, []byte, error) {
	h, ok := parseHeader(text)
	if !ok {
		return header{}, nil, errors.New("its header is damaged")
	}
	body := text[headerBytes:]
	if uint64(len(body)) != h.length {
		return h, nil, fmt.Errorf("it has %d bytes of %d", len(body), h.length)
	}
	if crc32.Checksum(body, castagnoli) != h.bodyCRC {
		return h, nil, errors.New("its checksum does not fit")
	}
	return h, body, nil
}

const logIDDigits = 16

func isLogID(id string) bool {
	if len(id) != logIDDigits {
		return false
	}
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
