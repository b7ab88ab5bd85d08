package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// listing is the files of a directory that belong to a journal.
type listing struct {
	snapshots, journals []uint64 // generations, ascending
	temporary           []string
}

func list(dir FS) (listing, error) {
	names, err := dir.List()
	if err != nil {
		return listing{}, err
	}
	var l listing
	for _, name := range names {
		plain := strings.TrimSuffix(strings.TrimSuffix(name, temporarySuffix), damagedSuffix)
		prefix, generation, ok := parseName(plain)
		if !ok {
			continue
		}
		switch {
		case plain != name && strings.HasSuffix(name, temporarySuffix):
			l.temporary = append(l.temporary, name)
		case plain != name: // kept aside; its generation is free again
			continue
		case prefix == snapshotPrefix:
			l.snapshots = append(l.snapshots, generation)
		default:
			l.journals = append(l.journals, generation)
		}
	}
	slices.Sort(l.snapshots)
	slices.Sort(l.journals)
	return l, nil
}

// formatBytes is how much of a file has to be looked at to know its format.
const formatBytes = 1024

// checkFormats returns a *NewerFormatError when a newer release wrote one of the files. Files that cannot be read are for recovery
// to judge.
func checkFormats(dir FS) error {
	l, err := list(dir)
	if err != nil {
		return err
	}
	for _, generation := range l.snapshots {
		text, _, err := dir.Read(snapshotName(generation), formatBytes)
		if err != nil {
			continue
		}
		if format, ok := snapshotFormat(text); ok && format > Format {
			return &NewerFormatError{File: snapshotName(generation), Format: format}
		}
	}
	for _, generation := range l.journals {
		text, _, err := dir.Read(journalName(generation), formatBytes)
		if err != nil {
			continue
		}
		first, _, _ := bytes.Cut(text, []byte{'\n'})
		if b, ok := parseBegin(first); ok && b.Format > Format {
			return &NewerFormatError{File: journalName(generation), Format: b.Format}
		}
	}
	return nil
}

// readSnapshot reads and checks a snapshot.
func readSnapshot(dir FS, generation uint64) (header, []byte, error) {
	text, err := readWhole(dir, snapshotName(generation), headerBytes+MaxSnapshotBytes)
	if err != nil {
		return header{}, nil, err
	}
	h, body, err := parseSnapshot(text)
	if err != nil {
		return h, nil, err
	}
	if h.generation != generation {
		return h, nil, fmt.Errorf("it was written as %s", snapshotName(h.generation))
	}
	return h, body, nil
}

// readWhole reads a file that is not longer than the limit, and nothing of one that is.
func readWhole(dir FS, name string, limit int64) ([]byte, error) {
	_, length, err := dir.Read(name, 0)
	if err != nil {
		return nil, err
	}
	if length > limit {
		return nil, fmt.Errorf("it has %d bytes, which is over the bound", length)
	}
	text, _, err := dir.Read(name, limit)
	return text, err
}

// entry is an entry that was read back, with where it was.
type entry struct {
	sequence uint64
	body     []byte
	journal  int // index into recovery.journals
	offset   int
	raw      []byte // the whole line
}

// contents is what one journal holds.
type contents struct {
	name       string
	generation uint64
	entries    []entry
	bad        []stretch
	torn       *stretch
	merged     bool // a bad line holds the beginning of another
	ended      bool // its last line is an end marker
	last       uint64
}

var errForeign = errors.New("it is not a journal of this directory")

// readJournal reads all lines of a journal. The log id is empty when nothing in the directory says it.
func readJournal(dir FS, generation uint64, logID string, limit int64) (contents, error) {
	c := contents{name: journalName(generation), generation: generation}
	text, err := readWhole(dir, c.name, limit)
	if err != nil || len(text) == 0 {
		return c, err
	}
	first, rest, whole := bytes.Cut(text, []byte{'\n'})
	b, good := parseBegin(first)
	good = good && b.Generation == generation && isLogID(b.Log) && (logID == "" || b.Log == logID)
	offset := 0
	switch {
	case good:
		offset, logID = len(first)+1, b.Log
	case whole:
		offset = len(first) + 1
		c.bad = append(c.bad, stretch{0, first})
	default: // nothing but the end of a write that did not happen
		rest = text
	}
	c.readLines(rest, offset, lineCheck(logID, generation))
	if !good && len(c.entries) == 0 && (whole || len(text) > MaxLineBytes) {
		return c, errForeign
	}
	return c, nil
}

func (c *contents) readLines(text []byte, offset int, check uint32) {
	for len(text) > 0 {
		raw, rest, whole := bytes.Cut(text, []byte{'\n'})
		l, ok := parseLine(check, raw)
		switch {
		case ok:
			c.addLine(l, offset, raw)
		case whole:
			c.bad = append(c.bad, stretch{offset, raw})
			c.merged = c.merged || holdsAnother(raw)
			c.ended = false
		default:
			c.torn = &stretch{offset, raw}
			c.ended = false
		}
		offset += len(raw) + 1
		text = rest
	}
}

func (c *contents) addLine(l line, offset int, raw []byte) {
	c.ended = l.kind == endLine
	c.last = max(c.last, l.sequence)
	if l.kind == entryLine {
		c.entries = append(c.entries, entry{sequence: l.sequence, body: l.body, offset: offset, raw: raw})
	}
}

// holdsAnother tells whether the beginning of a line stands inside this one, as two processes that write in turns leave it.
func holdsAnother(raw []byte) bool {
	return bytes.LastIndex(raw, []byte(` {"sequence":`)) > crcDigits
}
