package simulated

import (
	"crypto/rand"
	"hash/fnv"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// Ids of the windows.
const (
	windowFiveHour = "5h"
	windowWeekly   = "weekly"
)

// weeklyShare is what a request costs of the weekly window against what it costs of the five-hour one.
const weeklyShare = 1.0 / 25

// clock is one window. It does not run until it is used.
type clock struct {
	id     string
	kind   sdk.WindowKind
	length time.Duration
	// share of a request's cost that this window bears.
	share float64
	used  float64
	// resetsAt is zero while the window has not started.
	resetsAt time.Time
}

func newClock(declared sdk.WindowDeclaration, share, used float64, left time.Duration, now time.Time) clock {
	c := clock{id: declared.ID, kind: declared.Kind, length: declared.Length, share: share, used: used}
	if left == 0 || left > c.length {
		left = c.length
	}
	if used > 0 {
		c.resetsAt = now.Add(left)
	}
	return c
}

// roll resets the window when its time has come.
func (c *clock) roll(now time.Time) {
	if !c.resetsAt.IsZero() && !now.Before(c.resetsAt) {
		c.used, c.resetsAt = 0, time.Time{}
	}
}

// spend uses percent of the window and starts it if it was not running.
func (c *clock) spend(percent float64, now time.Time) {
	if c.resetsAt.IsZero() {
		c.resetsAt = now.Add(c.length)
	}
	c.used = min(100, c.used+percent)
}

func (c clock) full() bool { return c.used >= 100 }

// window is the clock as the quota service tells it.
func (c clock) window(observedAt time.Time) sdk.Window {
	used := c.used
	w := sdk.Window{
		ID: c.id, Kind: c.kind, Length: c.length, UsedPercent: &used, ResetsAt: c.resetsAt,
		State: sdk.StateObserved, Source: sdk.SourceOfficialClient, ObservedAt: observedAt,
	}
	switch {
	case c.full():
		w.State = sdk.StateExhausted
	case c.resetsAt.IsZero():
		w.State = sdk.StateAwaitingFirstUse
	}
	return w
}

// meter is an account at the upstream. It is safe for concurrent use.
type meter struct {
	account  string
	provider providerBlock
	// token lets in at the upstream; generation is another for every token.
	token, generation string

	mu       sync.Mutex // guards all below
	clocks   []clock
	costs    *mathrand.Rand
	rejected int
}

func newMeter(account string, provider providerBlock, block accountBlock, now time.Time) *meter {
	windows := provider.windows()
	name := fnv.New64a()
	name.Write([]byte(account))
	return &meter{
		account:    account,
		provider:   provider,
		token:      rand.Text(),
		generation: rand.Text(),
		clocks: []clock{
			newClock(windows[0], 1, block.FiveHourUsed, block.FiveHourLeft, now),
			newClock(windows[1], weeklyShare, block.WeeklyUsed, block.WeeklyLeft, now),
		},
		costs: mathrand.New(mathrand.NewPCG(uint64(provider.Seed), name.Sum64())),
	}
}

// read tells the windows at a time.
func (m *meter) read(now time.Time) []clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rolled(now)
}

// ruling is what becomes of a request.
type ruling struct {
	// clocks after the request.
	clocks []clock
	// rejectedBy is the full window, empty when the request was accepted.
	rejectedBy string
	// inStream: the rejection comes in the stream of a 200.
	inStream bool
}

// rule accepts one request, which spends of the windows, or rejects it when it does not fit into one, which is then full.
// So an account is found to be used up by a rejection, as in life. Rejections alternate between the two ways in which
// upstreams do that: first in the stream of a 200, then by status.
func (m *meter) rule(now time.Time) ruling {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A third more or less than the average.
	cost := m.provider.Cost * (2 + 2*m.costs.Float64()) / 3
	for i, c := range m.rolled(now) {
		if c.used+cost*m.clocks[i].share <= 100 {
			continue
		}
		m.clocks[i].spend(100, now)
		m.rejected++
		return ruling{clocks: m.rolled(now), rejectedBy: c.id, inStream: m.rejected%2 == 1}
	}
	for i := range m.clocks {
		m.clocks[i].spend(cost*m.clocks[i].share, now)
	}
	return ruling{clocks: m.rolled(now)}
}

// rolled gives a copy of the clocks at a time; callers hold mu.
func (m *meter) rolled(now time.Time) []clock {
	for i := range m.clocks {
		m.clocks[i].roll(now)
	}
	return append([]clock(nil), m.clocks...)
}
