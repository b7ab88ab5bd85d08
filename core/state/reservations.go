package state

import (
	"fmt"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
)

// reservationRow is the placement of one attempt that has not ended.
type reservationRow struct {
	Attempt   uint64
	RequestID string
	Session   string
	Model     string
	Account   quota.AccountID
	StartedAt time.Time
	Estimates []Estimate
}

// Estimate is what an attempt is expected to take from a window, in percent.
type Estimate struct {
	Window  string  `json:"window"`
	Percent float64 `json:"percent"`
}

func (s *Store) insertReservation(attempt *attempt, req placement.Request, d placement.Decision) error {
	row := &reservationRow{
		Attempt: attempt.id, RequestID: req.RequestID, Session: req.Session, Model: req.Model,
		Account: d.Account, StartedAt: req.At, Estimates: estimates(d),
	}
	txn := s.db.Txn(true)
	defer txn.Abort()
	if err := txn.Insert(tableReservations, row); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	txn.Commit()
	attempt.reserved = true
	s.reservations++
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
			list = append(list, Estimate{Window: t.Window, Percent: t.Kappa})
		}
		return list
	}
	return nil
}
