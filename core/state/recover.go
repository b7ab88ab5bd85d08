package state

import (
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/noria-dev/noria/core/quota"
)

// recover fills the store from its log, and then what is kept beside the store from the rows.
func (s *Store) recover() error {
	replay := newChange(s.db)
	defer func() { replay.Abort() }()
	words := make(words)
	restore := func(_ uint64, body []byte) error {
		db, sequence, err := readSnapshot(body)
		if err != nil {
			return err
		}
		replay.Abort()
		s.db, s.sequence = db, sequence
		replay = newChange(s.db)
		return nil
	}
	apply := func(sequence uint64, data []byte) error {
		if sequence <= s.sequence {
			return nil
		}
		e, err := decode(data, words)
		if err != nil {
			return err
		}
		s.sequence = sequence
		return e.apply(replay, sequence)
	}
	if err := s.log.Recover(restore, apply); err != nil {
		return err
	}
	replay.Commit()
	return s.revive()
}

// Inspect gives what a log asks of its owner when it is looked at: what a start would refuse is refused, and nothing is kept.
func Inspect() (restore, apply func(sequence uint64, body []byte) error) {
	known := make(words)
	restore = func(_ uint64, body []byte) error {
		_, _, err := readSnapshot(body)
		return err
	}
	apply = func(_ uint64, entry []byte) error {
		_, err := decode(entry, known)
		return err
	}
	return restore, apply
}

// revive builds accounts and active sessions from the rows.
func (s *Store) revive() error {
	txn := s.db.Txn(false)
	kept := make(map[quota.AccountID]*revived)
	of := func(id quota.AccountID) *revived {
		if kept[id] == nil {
			kept[id] = &revived{}
		}
		return kept[id]
	}
	if err := all(txn, tableAccounts, func(r *accountRow) bool { of(r.Account).row = r; return true }); err != nil {
		return err
	}
	if err := all(txn, tableBlockers, func(r *blockersRow) bool { of(r.Account).blockers = r.Blockers; return true }); err != nil {
		return err
	}
	if err := all(txn, tableWindows, func(r *windowRow) bool {
		of(r.Account).windows = append(of(r.Account).windows, plausible(r.Window))
		return true
	}); err != nil {
		return err
	}
	if err := all(txn, tableLearned, func(r *learnedRow) bool {
		if r.Account == (quota.AccountID{}) {
			s.demand = r.Demand
		} else {
			of(r.Account).completed = r.Completed
		}
		return true
	}); err != nil {
		return err
	}
	for id, r := range kept {
		a := &account{Account: quota.NewAccount(id, r.windows, r.blockers, r.completed)}
		if r.row != nil {
			a.switchedOff, a.generation = r.row.SwitchedOff, r.row.Generation
		}
		s.accounts[id] = a
	}
	return s.reviveSessions(txn)
}

// longestReset is how far from its evidence a reset is believed.
const longestReset = 366 * 24 * time.Hour

// plausible is a window without what no entry of ours would say: a percentage that is none makes it unknown, and a reset that
// is out of reach makes its reset unknown. Nobody is kept away, or let in, by a mistake.
func plausible(w quota.Window) quota.Window {
	percent := func(p float64) bool { return 0 <= p && p <= 100 }
	if !percent(w.Shown.UsedPercent) || !percent(w.EstimatePercent) {
		return quota.Window{Declaration: w.Declaration, Declared: w.Declared, Learned: w.Learned}
	}
	if w.ResetsAt.Sub(w.TakenAt).Abs() > longestReset {
		w.ResetsAt = time.Time{}
	}
	return w
}

type revived struct {
	row       *accountRow
	blockers  []quota.Blocker
	windows   []quota.Window
	completed quota.Counts
}

// cadenceHorizon is when a session's cadence has faded to nothing.
const cadenceHorizon = 24 * quota.CadenceMemory

// reviveSessions counts bindings, and takes up the sessions that were active when the log ended: an account's cadence is
// the sum of its sessions', so it is not kept a second time.
func (s *Store) reviveSessions(txn *memdb.Txn) error {
	rows, latest, err := s.countBindings(txn)
	if err != nil {
		return err
	}
	s.clock = wallClock{latest: latest, recovered: true}
	active := func(r *bindingRow) bool { return latest.Sub(r.LastUsed) < quota.ActivePeriodGap }
	s.resumeLive(rows, active)
	recent := slices.DeleteFunc(rows, func(r *bindingRow) bool { return latest.Sub(r.LastUsed) >= cadenceHorizon })
	slices.SortStableFunc(recent, func(a, b *bindingRow) int { return a.LastUsed.Compare(b.LastUsed) })
	for _, r := range recent {
		a := s.ensure(r.account())
		a.Cadence.Add(r.Model, r.Cadence, r.LastUsed)
		if active(r) {
			m := s.liveSession(r.Session).model(r.Model)
			m.active, m.lastAccepted = true, r.LastUsed
			a.LiveSessions++
			s.periods.began(m, r.LastUsed)
		}
	}
	return nil
}

// resumeLive takes up the sessions that have an active binding, with all their bindings.
func (s *Store) resumeLive(rows []*bindingRow, active func(*bindingRow) bool) {
	live := 0
	for _, r := range rows {
		if active(r) {
			live++
		}
	}
	s.live, s.periods.marks = make(map[string]*liveSession, live), make([]periodMark, 0, live)
	for len(rows) > 0 { // bindings of a session follow each other
		key := rows[0].Session
		end := slices.IndexFunc(rows, func(r *bindingRow) bool { return r.Session != key })
		if end < 0 {
			end = len(rows)
		}
		if slices.ContainsFunc(rows[:end], active) {
			s.resume(key, rows[:end])
		}
		rows = rows[end:]
	}
}

// countBindings lists all bindings by session and model, and tells when the last was used.
func (s *Store) countBindings(txn *memdb.Txn) (rows []*bindingRow, latest time.Time, err error) {
	err = all(txn, tableBindings, func(r *bindingRow) bool {
		rows = append(rows, r)
		s.used = s.used.plus(r.space())
		s.ensure(r.account()).bindings++
		if r.LastUsed.After(latest) {
			latest = r.LastUsed
		}
		return true
	})
	return rows, latest, err
}
