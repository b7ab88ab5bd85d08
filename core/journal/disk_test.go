package journal

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// disk is a directory in memory that knows what would survive a power cut. Data survives once its file was synced, a name once
// the directory was; of everything later an arbitrary part does.
type disk struct {
	mu      sync.Mutex // guards all below
	names   map[string]*inode
	kept    map[string]*inode // names on stable storage
	changes []change          // of names, since the last sync
	ops     int
	crashAt int // the number of the operation at which the power fails; 0 for never
	dead    bool
	fail    func(op, name string) error // decides whether an operation fails
	random  *rand.Rand
}

type inode struct {
	data   []byte  // what a reader sees
	kept   []byte  // what is on stable storage
	writes []write // since the last sync
}

type write struct {
	offset int
	data   []byte
}

type change struct {
	name string
	file *inode // nil for removed
	from string // set for a rename
}

var errPowerCut = errors.New("power cut")

func newDisk(seed uint64) *disk {
	return &disk{
		names: map[string]*inode{}, kept: map[string]*inode{},
		random: rand.New(rand.NewPCG(seed, 1)),
	}
}

// step counts one operation and says whether it can be done. d.mu is held.
func (d *disk) step(op, name string) error {
	if d.dead {
		return errPowerCut
	}
	d.ops++
	if d.ops == d.crashAt {
		d.dead = true
		return errPowerCut
	}
	if d.fail != nil {
		return d.fail(op, name)
	}
	return nil
}

func (d *disk) Lock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errPowerCut
	}
	if d.fail != nil {
		return d.fail("lock", "lock")
	}
	return nil
}

func (d *disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, errPowerCut
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

func (d *disk) Read(name string, limit int64) ([]byte, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, 0, errPowerCut
	}
	file, ok := d.names[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	length := int64(len(file.data))
	return slices.Clone(file.data[:min(length, limit)]), length, nil
}

func (d *disk) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("create", name); err != nil {
		return nil, err
	}
	if _, ok := d.names[name]; ok {
		return nil, fs.ErrExist
	}
	file := &inode{}
	d.names[name] = file
	d.changes = append(d.changes, change{name: name, file: file})
	return &diskFile{disk: d, inode: file, name: name}, nil
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("rename", from); err != nil {
		return err
	}
	file, ok := d.names[from]
	if !ok {
		return fs.ErrNotExist
	}
	delete(d.names, from)
	d.names[to] = file
	d.changes = append(d.changes, change{name: to, file: file, from: from})
	return nil
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("remove", name); err != nil {
		return err
	}
	if _, ok := d.names[name]; !ok {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	d.changes = append(d.changes, change{name: name})
	return nil
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("sync directory", ""); err != nil {
		return err
	}
	for _, c := range d.changes {
		c.apply(d.kept)
	}
	d.changes = nil
	return nil
}

func (d *disk) Close() error { return nil }

func (c change) apply(names map[string]*inode) {
	if c.file == nil {
		delete(names, c.name)
		return
	}
	if c.from != "" {
		delete(names, c.from)
	}
	names[c.name] = c.file
}

// afterPowerCut is the disk as the next start finds it.
func (d *disk) afterPowerCut() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newDisk(d.random.Uint64())
	names := maps.Clone(d.kept)
	ordered := d.random.IntN(2) == 0
	length := d.random.IntN(len(d.changes) + 1)
	for i, c := range d.changes {
		if ordered && i < length || !ordered && d.random.IntN(2) == 0 {
			c.apply(names)
		}
	}
	survived := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		file := names[name]
		if survived[file] == nil {
			data := file.afterPowerCut(d.random)
			survived[file] = &inode{data: data, kept: slices.Clone(data)}
		}
		next.names[name], next.kept[name] = survived[file], survived[file]
	}
	return next
}

// afterKill is the disk as the next start finds it when the process was killed: nothing is lost, and nothing was synced.
func (d *disk) afterKill() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newDisk(d.random.Uint64())
	next.names, next.kept, next.changes = maps.Clone(d.names), maps.Clone(d.kept), slices.Clone(d.changes)
	return next
}

const sector = 512

// afterPowerCut is what is left of the file: what was synced, and of the later writes nothing, all, a beginning, or any sectors.
func (f *inode) afterPowerCut(random *rand.Rand) []byte {
	data := slices.Clone(f.kept)
	how := random.IntN(4)
	upTo := random.IntN(len(f.writes) + 1)
	for i, w := range f.writes {
		switch {
		case how == 0, how == 2 && i > upTo:
			return data
		case how == 1, how == 2 && i < upTo:
			data = put(data, w.offset, w.data)
		case how == 2:
			data = put(data, w.offset, w.data[:random.IntN(len(w.data)+1)])
		default:
			data = w.scatter(data, random)
		}
	}
	return data
}

// scatter writes some of the sectors that the write touches. The length may grow all the same: then the rest is zeros.
func (w write) scatter(data []byte, random *rand.Rand) []byte {
	for at := 0; at < len(w.data); {
		end := min(len(w.data), at+sector-(w.offset+at)%sector)
		if random.IntN(2) == 0 {
			data = put(data, w.offset+at, w.data[at:end])
		} else if random.IntN(4) == 0 && w.offset+end > len(data) {
			data = append(data, make([]byte, w.offset+end-len(data))...)
		}
		at = end
	}
	return data
}

func put(data []byte, offset int, b []byte) []byte {
	if missing := offset + len(b) - len(data); missing > 0 {
		data = append(data, make([]byte, missing)...)
	}
	copy(data[offset:], b)
	return data
}

type diskFile struct {
	disk  *disk
	inode *inode
	name  string
	at    int
}

func (f *diskFile) Write(p []byte) (int, error) {
	n, err := f.put(p, f.at)
	f.at += n
	return n, err
}

func (f *diskFile) WriteAt(p []byte, offset int64) (int, error) { return f.put(p, int(offset)) }

func (f *diskFile) put(p []byte, offset int) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.dead {
		return 0, errPowerCut
	}
	err := f.disk.step("write", f.name)
	n := len(p)
	if err != nil { // some of it got there all the same
		n = f.disk.random.IntN(len(p) + 1)
	}
	f.inode.data = put(f.inode.data, offset, p[:n])
	f.inode.writes = append(f.inode.writes, write{offset: offset, data: slices.Clone(p[:n])})
	return n, err
}

// Sync that fails leaves pages that look clean: readers see them, no later sync writes them, and any of them may be on the disk.
func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.dead {
		return errPowerCut
	}
	err := f.disk.step("sync", f.name)
	if err != nil && f.disk.dead {
		return err
	}
	if err != nil {
		f.inode.kept = f.inode.afterPowerCut(f.disk.random)
		f.inode.writes = nil
		return err
	}
	for _, w := range f.inode.writes {
		f.inode.kept = put(f.inode.kept, w.offset, w.data)
	}
	f.inode.writes = nil
	return nil
}

func (f *diskFile) Linked() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.dead {
		return errPowerCut
	}
	if f.disk.names[f.name] != f.inode {
		return errUnlinked
	}
	return nil
}

func (f *diskFile) Close() error { return nil }

// mutation is a directory under a journal that forgets a step or takes it at the wrong time.
type mutation struct {
	FS
	noSync, noDirectorySync, noSnapshotSync, deleteFirst, renameFirst bool
}

func (m *mutation) Create(name string) (File, error) {
	snapshot := strings.HasSuffix(name, temporarySuffix)
	if snapshot && m.deleteFirst {
		m.removeBelow(name)
	}
	file, err := m.FS.Create(name)
	if err != nil {
		return nil, err
	}
	if snapshot && m.renameFirst {
		err = m.FS.Rename(name, strings.TrimSuffix(name, temporarySuffix))
	}
	if m.noSync && strings.HasPrefix(name, journalPrefix) || m.noSnapshotSync && snapshot {
		file = unsynced{file}
	}
	return file, err
}

func (m *mutation) removeBelow(temporary string) {
	_, newest, _ := parseName(strings.TrimSuffix(temporary, temporarySuffix))
	names, _ := m.FS.List()
	for _, name := range names {
		if _, generation, ok := parseName(name); ok && generation < newest {
			_ = m.FS.Remove(name)
		}
	}
}

func (m *mutation) Rename(from, to string) error {
	if m.renameFirst && strings.HasSuffix(from, temporarySuffix) {
		return nil
	}
	return m.FS.Rename(from, to)
}

func (m *mutation) Sync() error {
	if m.noDirectorySync {
		return nil
	}
	return m.FS.Sync()
}

type unsynced struct{ File }

func (unsynced) Sync() error { return nil }

// diskWith is a disk that holds the files.
func diskWith(files map[string][]byte) *disk {
	d := newDisk(1)
	for name, data := range files {
		file := &inode{data: slices.Clone(data), kept: slices.Clone(data)}
		d.names[name], d.kept[name] = file, file
	}
	return d
}

// files is what a reader sees.
func (d *disk) files() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string][]byte{}
	for name, file := range d.names {
		files[name] = slices.Clone(file.data)
	}
	return files
}
