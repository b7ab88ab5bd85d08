package state

// Stats are counts for metrics and doctor.
type Stats struct {
	Bindings int `json:"bindings"`
	// InMemory sessions are active or have something under way.
	InMemory     int `json:"in_memory"`
	LiveSessions int `json:"live_sessions"`
	Blockers     int `json:"blockers"`
	InFlight     int `json:"in_flight"`
	Reservations int `json:"reservations"`
	// Entries appended by this process; Sequence of the last, Durable of the last on disk.
	Entries  uint64 `json:"entries"`
	Sequence uint64 `json:"sequence"`
	Durable  uint64 `json:"durable"`
	// ClockHeld: the wall clock says something implausible, and the last good time is used.
	ClockHeld bool `json:"clock_held"`
}

// Stats are counts for metrics and doctor.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{
		Bindings: s.used.bindings, InMemory: len(s.live), InFlight: len(s.attempts),
		Entries: s.entries, Sequence: s.sequence, Durable: s.log.DurableSequence(), ClockHeld: s.clock.held,
	}
	for _, attempt := range s.attempts {
		if attempt.reserved {
			stats.Reservations++
		}
	}
	for _, a := range s.accounts {
		stats.Blockers += len(a.Blockers)
		stats.LiveSessions += a.LiveSessions
	}
	return stats
}
