package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// keptAside is how many damaged files are kept, the newest.
	keptAside = 8
	// maxAsideBytes bounds what is kept of the bad lines of one journal.
	maxAsideBytes = 1 << 20
)

// stretch is a run of bytes of a journal that could not be used.
type stretch struct {
	offset int
	bytes  []byte
}

// aside is what recovery could not use of one file: all of it, or some stretches.
type aside struct {
	name      string
	whole     bool
	stretches []stretch
}

// keep puts it aside: a file under another name, stretches as a copy.
func (a aside) keep(dir FS) error {
	if a.whole {
		return dir.Rename(a.name, a.name+damagedSuffix)
	}
	file, err := createAnew(dir, a.name+damagedSuffix) // this damage may have been seen before
	if err != nil {
		return err
	}
	_, err = file.Write(a.encode())
	return errors.Join(err, file.Close())
}

func (a aside) encode() []byte {
	var text []byte
	for _, s := range a.stretches {
		room := maxAsideBytes - len(text)
		if room <= 0 {
			break
		}
		text = fmt.Appendf(text, "# %s, offset %d, %d bytes\n", a.name, s.offset, len(s.bytes))
		text = append(text, s.bytes[:min(len(s.bytes), room)]...)
		text = append(text, '\n')
	}
	return text
}

// removeAside removes all but the newest damaged files.
func removeAside(dir FS, names []string) {
	var kept []string
	for _, name := range names {
		if _, _, ok := parseName(strings.TrimSuffix(name, damagedSuffix)); ok && strings.HasSuffix(name, damagedSuffix) {
			kept = append(kept, name)
		}
	}
	slices.SortFunc(kept, func(a, b string) int { return cmp.Compare(generationOf(b), generationOf(a)) })
	for _, name := range kept[min(len(kept), keptAside):] {
		_ = dir.Remove(name) // tried again with the next generation
	}
}

func generationOf(damaged string) uint64 {
	_, generation, _ := parseName(strings.TrimSuffix(damaged, damagedSuffix))
	return generation
}
