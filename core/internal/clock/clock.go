// Package clock is the daemon's source of time, so that tests can move it.
package clock

import (
	"sync"
	"time"
)

// Clock tells the wall-clock time in UTC.
type Clock interface {
	Now() time.Time
}

// Wall is the system's clock.
type Wall struct{}

// Now returns the time in UTC.
func (Wall) Now() time.Time { return time.Now().UTC() }

// Fake is a clock that stands until it is moved. It is safe for concurrent use.
type Fake struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewFake returns a clock that stands at now.
func NewFake(now time.Time) *Fake { return &Fake{now: now.UTC()} }

// Now returns the time it stands at.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves it by d.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// Set moves it to now.
func (f *Fake) Set(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now.UTC()
}
