package sdk

import (
	"sync"
	"time"
)

// renewEvery is how often one version of a login is given to its official client.
const renewEvery = time.Minute

// Renewals remembers which version of a login was given to its official client to renew, so that a login which cannot be
// renewed does not start the client with every lease. The zero value is ready; it is safe for concurrent use.
type Renewals struct {
	mu   sync.Mutex // guards last
	last map[string]renewal
}

type renewal struct {
	version string
	at      time.Time
}

// Due reports whether this version of the login was not tried within the last minute, and notes that it is tried now.
func (r *Renewals) Due(login, version string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.last[login]; last.version == version && now.Sub(last.at) < renewEvery {
		return false
	}
	if r.last == nil {
		r.last = map[string]renewal{}
	}
	r.last[login] = renewal{version: version, at: now}
	return true
}
