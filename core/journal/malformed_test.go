package journal

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

func updateCRC(check uint32, object string) uint32 {
	return crc32.Update(check, castagnoli, []byte(object))
}

// malformed makes one of the files of an image into something else: random bytes, several flips, cuts, repeats, and lines whose
// checksums are right and whose contents are not.
func malformed(random *rand.Rand, data []byte, check uint32) []byte {
	data = slices.Clone(data)
	for range 1 + random.IntN(4) {
		if len(data) == 0 {
			data = []byte{byte(random.Uint32())}
		}
		at := random.IntN(len(data))
		length := random.IntN(min(200, len(data)-at) + 1)
		switch random.IntN(7) {
		case 0:
			data[at] ^= 1 << random.IntN(8)
		case 1:
			data = data[:at]
		case 2:
			data = slices.Insert(data, at, data[at:at+length]...)
		case 3:
			data = slices.Delete(data, at, at+length)
		case 4:
			for i := range length {
				data[at+i] = byte(random.Uint32())
			}
		case 5:
			object := bytes.Clone(data[at : at+length])
			raw := append([]byte("00000000 "), object...)
			putCRC(raw, crc32.Update(check, castagnoli, object))
			data = slices.Concat(data[:at], []byte("\n"), raw, []byte("\n"), data[at:])
		case 6:
			data = slices.Insert(data, at, '\n')
		}
	}
	return data
}

func TestMalformedFilesNeverStopAStart(t *testing.T) {
	im := smallImage(t)
	h, _ := parseHeader(im.files["snapshot-3"])
	names := []string{"journal-2", "journal-3", "snapshot-2", "snapshot-3"}
	for seed := range uint64(malformedFiles) {
		random := rand.New(rand.NewPCG(seed, 5))
		d := diskWith(im.files)
		for _, name := range names[random.IntN(4):] {
			_, generation, _ := parseName(name)
			data := malformed(random, im.files[name], lineCheck(h.log, generation))
			d.names[name] = &inode{data: data, kept: data}
		}
		j, o, err := openOn(d, quick())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := im.missing(o); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o.answer(j)
		mustBeDurable(t, j, mustWrite(t, j, o, "new", "1"))
		if err := j.Close(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzJournal(f *testing.F) {
	begin := appendBegin(nil, begin{Format: Format, Log: hostileLog, Generation: 1})
	good := appendLine(slices.Clone(begin), lineCheck(hostileLog, 1), line{sequence: 1, kind: entryLine, body: []byte(`{"key":"a","value":"b"}`)})
	f.Add(good)
	f.Add(good[:len(good)-4])
	f.Add(bytes.Repeat([]byte{0}, sector))
	f.Fuzz(func(t *testing.T, data []byte) { mustStart(t, "journal-1", data) })
}

func FuzzSnapshot(f *testing.F) {
	body := []byte(`{"a":{"sequence":1,"value":"b"}}`)
	h := header{format: Format, log: hostileLog, generation: 1, sequence: 1, length: uint64(len(body)), bodyCRC: crc32.Checksum(body, castagnoli)}
	f.Add(append(h.encode(), body...))
	f.Add(h.encode())
	f.Add([]byte(magic + " 99 "))
	f.Fuzz(func(t *testing.T, data []byte) { mustStart(t, "snapshot-1", data) })
}

// mustStart recovers on a directory with that file, appends, and finds it all again.
func mustStart(t *testing.T, name string, data []byte) {
	d := diskWith(map[string][]byte{name: data})
	j, o, err := openOn(d, quick())
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	o.answer(j)
	mustBeDurable(t, j, mustWrite(t, j, o, "new", "1"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	back, _, _, err := recoverOn(d)
	if err != nil {
		t.Fatal(err)
	}
	if back.rows["new"].Value != "1" {
		t.Errorf("recovered %v", back.rows)
	}
}
