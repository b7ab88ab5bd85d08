package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// Errors of a store.
var (
	ErrClosed         = errors.New("store closed")
	ErrUnknownAccount = errors.New("unknown account")
	ErrUnknownSession = errors.New("unknown session")
	// ErrAttemptExists says that an attempt of that number is under way.
	ErrAttemptExists = errors.New("attempt exists")
)

// Settings may change while the store runs. Zero values mean the defaults.
type Settings struct {
	// Fit is φ of the placement: 0.5.
	Fit *float64
	// MaxBindings is how many bindings are kept: 100,000.
	MaxBindings int
	// Idle is how long a binding is kept unused: 30 days.
	Idle time.Duration
}

// Defaults of Settings.
const (
	DefaultMaxBindings = 100_000
	DefaultIdle        = 30 * 24 * time.Hour
)

// Store is the state of a daemon. It is safe for concurrent use.
type Store struct {
	log Log

	mu sync.Mutex // guards all below, and write transactions
	db *memdb.MemDB
	// sequence of the last entry applied.
	sequence uint64
	entries  uint64
	fit      float64
	limit    space // for bindings
	idle     time.Duration

	accounts   map[quota.AccountID]*account
	configured []*account                  // in configuration order
	providers  map[string][]*quota.Account // the same, of each provider

	live     map[string]*liveSession
	touched  []*liveModel // whose row is older than what is known in memory
	attempts map[uint64]*attempt
	used     space // by bindings

	demand        quota.Demand
	demandWriting writing
	periods       periods
	expired       time.Time // when idle bindings were last looked for

	clock     wallClock
	changed   chan struct{}
	decisions decisions
	closed    bool
}

// Open recovers the state that log holds. An error that is errors.ErrUnsupported says that a newer release wrote it.
func Open(log Log, settings Settings) (*Store, error) {
	db, err := newDB()
	if err != nil {
		return nil, err
	}
	s := &Store{
		log: log, db: db,
		accounts:  make(map[quota.AccountID]*account),
		providers: make(map[string][]*quota.Account),
		live:      make(map[string]*liveSession),
		attempts:  make(map[uint64]*attempt),
		changed:   make(chan struct{}),
	}
	s.set(settings)
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("recover state: %w", err)
	}
	return s, nil
}

func (s *Store) set(settings Settings) {
	s.fit, s.limit, s.idle = placement.DefaultFit, space{DefaultMaxBindings, maxBindingBytes}, DefaultIdle
	if settings.Fit != nil {
		s.fit = *settings.Fit
	}
	if settings.MaxBindings > 0 {
		s.limit.bindings = settings.MaxBindings
	}
	if settings.Idle > 0 {
		s.idle = settings.Idle
	}
}

// ApplySettings changes them while the store runs.
func (s *Store) ApplySettings(settings Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(settings)
}

// Durable returns nil once sequence is durable, at once when the log is degraded (serving goes on from memory), or ctx's
// error.
func (s *Store) Durable(ctx context.Context, sequence uint64) error {
	if sequence == 0 || sequence <= s.log.DurableSequence() {
		return nil
	}
	err := s.log.Durable(ctx, sequence)
	if err != nil && ctx.Err() == nil && s.log.Degraded() != nil {
		return nil
	}
	return err
}

// Degraded is nil, or why nothing is acknowledged as durable at present.
func (s *Store) Degraded() error { return s.log.Degraded() }

// pingInterval is how often Ping tries to get the lock. It tries, since waiting for a mutex cannot be given up: a Ping that
// waited in Lock would outlive its caller for as long as the deadlock that it is to find.
const pingInterval = time.Millisecond

// Ping takes the state lock, so that a deadlock cannot look healthy. It waits no longer than ctx.
func (s *Store) Ping(ctx context.Context) error {
	if s.mu.TryLock() {
		s.mu.Unlock()
		return nil
	}
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("take state lock: %w", ctx.Err())
		case <-ticker.C:
			if s.mu.TryLock() {
				s.mu.Unlock()
				return nil
			}
		}
	}
}

// Watch returns a channel that is closed at the next change of accounts, bindings, blockers or windows.
func (s *Store) Watch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// commit appends entries and applies them in one write transaction, all or none. The sequence is that of the last.
func (s *Store) commit(entries ...entry) (uint64, error) {
	if s.closed {
		return 0, ErrClosed
	}
	encoded := make([][]byte, len(entries))
	for i, e := range entries {
		data, err := encode(e)
		if err != nil {
			return 0, err
		}
		encoded[i] = data
	}
	last, err := s.log.Append(encoded...)
	if err != nil {
		return 0, fmt.Errorf("append %d entries: %w", len(entries), err)
	}
	txn := newChange(s.db)
	defer txn.Abort()
	sequence := last - uint64(len(entries))
	for _, e := range entries {
		sequence++
		if err := e.apply(txn, sequence); err != nil {
			return 0, fmt.Errorf("apply %s entry: %w", e.entryType(), err)
		}
	}
	txn.Commit()
	s.sequence, s.entries = last, s.entries+uint64(len(entries))
	return last, nil
}

// Tick lets time pass where no request does: active periods end, windows roll, coalesced rows are written, idle bindings
// go. The owner calls it about once a second.
func (s *Store) Tick(at time.Time) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	now := s.moment(at)
	s.sweep(now)
	rolled := false
	for _, a := range s.accounts {
		if a.Settle(now) {
			a.writing.dirty, rolled = true, true
		}
	}
	if rolled {
		s.notify()
	}
	err := s.flush(now, false)
	overdue := !s.used.within(s.limit) || now.Sub(s.expired) >= expireInterval || now.Before(s.expired)
	if overdue {
		s.expired = now
	}
	s.mu.Unlock()
	if overdue {
		err = errors.Join(err, s.expire(now))
	}
	return err
}

// Run answers the log's wish for snapshots until ctx ends. A snapshot that fails leaves the log degraded, and it asks again.
func (s *Store) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-s.log.SnapshotWanted():
			if !ok {
				return
			}
			_ = s.Snapshot() // the log keeps the reason: see Degraded
		}
	}
}

// Snapshot writes the whole state to the log, beside the requests. What is coalesced and not written yet stays so.
func (s *Store) Snapshot() error {
	return s.log.Snapshot(func(w io.Writer) (uint64, error) {
		s.mu.Lock()
		sequence, txn := s.sequence, s.db.Txn(false)
		s.mu.Unlock()
		return sequence, writeSnapshot(w, txn, sequence)
	})
}

// Close writes what is not written yet and closes the log.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	err := s.flush(s.clock.latest, true)
	s.closed = true
	s.mu.Unlock()
	return errors.Join(err, s.log.Close())
}
