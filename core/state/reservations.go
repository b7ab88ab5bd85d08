package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// reservationRow is the placement of one attempt that has not ended.
type reservationRow struct {
	Attempt uint64
	Session string
	Reservation
}

// Reservation is the estimated work of a request that was placed anew and has not ended. What the session asks where it is
// bound is counted on its account alone.
type Reservation struct {
	RequestID string          `json:"request_id"`
	Account   quota.AccountID `json:"account"`
	Model     string          `json:"model,omitempty"`
	StartedAt time.Time       `json:"started_at"`
	Estimates []Estimate      `json:"estimates,omitempty"`
}

// Estimate is what an attempt is expected to take from a window, in percent. Window is its id, Name what people call it.
type Estimate struct {
	Window  string  `json:"window"`
	Name    string  `json:"name"`
	Percent float64 `json:"percent"`
}

func (s *Store) insertReservation(attempt *attempt, req placement.Request, d placement.Decision) error {
	row := &reservationRow{Attempt: attempt.id, Session: req.Session, Reservation: Reservation{
		RequestID: req.RequestID, Account: d.Account, Model: req.Model, StartedAt: req.At, Estimates: estimates(d),
	}}
	txn := s.db.Txn(true)
	defer txn.Abort()
	if err := txn.Insert(tableReservations, row); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	txn.Commit()
	attempt.reserved = true
	return nil
}

func estimates(d placement.Decision) []Estimate {
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.Account != d.Account {
			continue
		}
		list := make([]Estimate, 0, len(c.Terms))
		for _, t := range c.Terms {
			if t.Known() {
				list = append(list, Estimate{Window: t.Window, Name: t.Name, Percent: t.Kappa})
			}
		}
		return list
	}
	return nil
}

// dropReservation takes out the row of an attempt that has one.
func (s *Store) dropReservation(attempt *attempt) {
	if !attempt.reserved {
		return
	}
	txn := s.db.Txn(true)
	defer txn.Abort()
	if err := txn.Delete(tableReservations, &reservationRow{Attempt: attempt.id}); err == nil { // it is there: nothing can fail
		txn.Commit()
	}
}

// Reservations are those of the session with that key, or of the request with that id, in the order of their attempts.
func (s *Store) Reservations(subject string) []Reservation {
	s.mu.Lock()
	txn := s.db.Txn(false)
	s.mu.Unlock()
	var found []Reservation
	_ = all(txn, tableReservations, func(r *reservationRow) bool {
		if subject != "" && (r.Session == subject || r.RequestID == subject) {
			found = append(found, r.Reservation)
		}
		return true
	})
	return found
}
