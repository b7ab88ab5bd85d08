package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is what a client may rely on: what it was told is durable, and which value belongs to which sequence.
type model struct {
	facts   map[uint64]fact
	durable uint64
}

// check compares what was recovered with what had been promised.
func (m *model) check(o *owner, r Recovered) error {
	for key, got := range o.rows {
		if want, ok := m.facts[got.Sequence]; !ok || want != (fact{key, got.Value}) {
			return fmt.Errorf("wrong value: %s has %+v, entry %d was %+v", key, got, got.Sequence, want)
		}
	}
	for sequence, f := range m.facts {
		if sequence <= m.durable && o.rows[f.Key].Sequence < sequence {
			return fmt.Errorf("lost: %s was acknowledged with entry %d of %d, recovered is %d", f.Key, sequence, m.durable, o.rows[f.Key].Sequence)
		}
	}
	if r.Sequence < m.durable {
		return fmt.Errorf("lost: recovered up to %d, acknowledged was %d", r.Sequence, m.durable)
	}
	if r.BadSnapshots > 0 {
		return fmt.Errorf("a snapshot was in its place before it was whole")
	}
	return nil
}

// forget drops what was never acknowledged and is gone.
func (m *model) forget(o *owner, r Recovered) {
	maps.DeleteFunc(m.facts, func(sequence uint64, _ fact) bool {
		return sequence > m.durable && sequence > r.SnapshotSequence && !slices.Contains(o.order, sequence)
	})
}

// life is one run of a journal: appends, waits, snapshots, until it is told to stop or the power fails.
func (m *model) life(j *Journal, o *owner, random *rand.Rand, steps int) {
	for range steps {
		switch random.IntN(8) {
		case 0, 1, 2, 3, 4:
			for range 1 + random.IntN(4) {
				f := fact{keyOf(random.IntN(12)), fmt.Sprint(random.Uint64())}
				if sequence, err := o.write(j, f); err == nil {
					m.facts[sequence] = f
				}
			}
		case 5, 6:
			o.answer(j)
			_ = j.Durable(context.Background(), j.Stats().Sequence)
		case 7:
			_ = j.Snapshot(o.snapshot)
		}
		m.durable = max(m.durable, j.DurableSequence())
	}
}

// campaign crashes journals at every operation of random lives until it has had that many crashes. It returns what the checker
// found.
func campaign(points int, seed uint64, under func(*disk) FS) (crashes int, errs []error) {
	for ; crashes < points && len(errs) < 3; seed++ {
		for crashAt := 1; crashes < points && len(errs) < 3; crashAt++ {
			cut, err := crashOnce(seed, crashAt, under)
			if err != nil {
				errs = append(errs, fmt.Errorf("seed %d, operation %d: %w", seed, crashAt, err))
			}
			if !cut {
				break
			}
			crashes++
		}
	}
	return crashes, errs
}

// crashOnce lives, loses power at the operation, recovers, lives on, and is killed and recovers once more. It tells whether the life
// was long enough for the power cut.
func crashOnce(seed uint64, crashAt int, under func(*disk) FS) (bool, error) {
	random := rand.New(rand.NewPCG(seed, uint64(crashAt)))
	m := &model{facts: map[uint64]fact{}}
	d := newDisk(random.Uint64())
	d.crashAt = crashAt
	if err := m.liveOn(under(d), random, 24); err != nil {
		return true, err
	}
	cut := d.dead
	d = d.afterPowerCut()
	d.crashAt = 1 + random.IntN(40)
	if err := m.liveOn(under(d), random, 8); err != nil {
		return cut, fmt.Errorf("after the power cut: %w", err)
	}
	if d.dead {
		d = d.afterPowerCut()
	} else {
		d = d.afterKill()
	}
	if err := m.liveOn(under(d), random, 2); err != nil {
		return cut, fmt.Errorf("after the second end: %w", err)
	}
	return cut, nil
}

// liveOn recovers on the disk, checks, and lives for some steps.
func (m *model) liveOn(dir FS, random *rand.Rand, steps int) error {
	j, o, err := openOn(dir, quick())
	if errors.Is(err, errPowerCut) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := m.check(o, j.recovered); err != nil {
		return errors.Join(err, ignore(j.Close()))
	}
	m.forget(o, j.recovered)
	if random.IntN(4) > 0 {
		_ = j.Snapshot(o.snapshot)
	}
	m.life(j, o, random, steps)
	if random.IntN(4) == 0 {
		_ = j.Close()
		m.durable = max(m.durable, j.DurableSequence())
		return nil
	}
	return ignore(abandon(j, m))
}

// abandon ends the journal's goroutine without letting it write anything more, as a kill would.
func abandon(j *Journal, m *model) error {
	if d := diskOf(j.fs); d != nil {
		d.mu.Lock()
		m.durable = max(m.durable, j.DurableSequence())
		d.dead = true
		d.mu.Unlock()
	}
	return j.Close()
}

func diskOf(dir FS) *disk {
	switch d := dir.(type) {
	case *disk:
		return d
	case *mutation:
		return diskOf(d.FS)
	}
	return nil
}

func ignore(error) error { return nil }

func whole(d *disk) FS { return d }

func TestNothingAcknowledgedIsLostWhereverThePowerFails(t *testing.T) {
	crashes, errs := campaign(crashPoints, 1, whole)
	for _, err := range errs {
		t.Error(err)
	}
	t.Logf("%d crash points, %d losses", crashes, len(errs))
}

func TestTheCheckerCatchesEverySeededMutation(t *testing.T) {
	mutations := map[string]mutation{
		"no fsync":           {noSync: true},
		"no directory fsync": {noDirectorySync: true},
		"no snapshot fsync":  {noSnapshotSync: true},
		"delete first":       {deleteFirst: true},
		"rename first":       {renameFirst: true},
	}
	for _, name := range slices.Sorted(maps.Keys(mutations)) {
		t.Run(name, func(t *testing.T) {
			crashes, errs := campaign(mutationPoints, 1, func(d *disk) FS {
				m := mutations[name]
				m.FS = d
				return &m
			})
			if len(errs) == 0 {
				t.Fatalf("not caught in %d crash points", crashes)
			}
			t.Logf("caught within %d crash points: %v", crashes, errs[0])
		})
	}
}
