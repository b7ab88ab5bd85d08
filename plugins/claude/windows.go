package claude

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// headerPrefix of the limit headers: status, reset and representative-claim for the account as a whole, and status,
// utilization (a fraction) and reset (unix seconds) for each window, as in 5h-status.
const headerPrefix = "anthropic-ratelimit-unified-"

// Windows are named by the client's own claim words. The headers call them 5h, 7d and 7d_<family>.
const (
	windowFiveHour = "five_hour"
	windowSevenDay = "seven_day"

	fiveHours = 5 * time.Hour
	sevenDays = 7 * 24 * time.Hour
)

// maxClocks bounds the windows of one answer; the account's own sort first.
const maxClocks = 16

// claimPattern matches the client's words for windows.
var claimPattern = regexp.MustCompile(`^(five_hour|seven_day(_[a-z0-9]+)*)$`)

// rejected is the status word for a window, or an account, that has nothing left.
const rejected = "rejected"

// Observe reads the windows of one account from the limit headers of an answer. A window that is rejected on an answer
// that succeeded is being served from the user's extra credits: it is exhausted, for what comes next.
func (*Adapter) Observe(_ context.Context, _ sdk.Account, obs sdk.Observation) ([]sdk.Window, error) {
	return readLimits(obs.Header, obs.ObservedAt).windows(sdk.SourceResponseHeader), nil
}

// limits are the limit headers of one answer.
type limits struct {
	// present: there was any limit header.
	present bool
	// rejected: the answer says that the account has nothing left.
	rejected bool
	// claim is the window that the provider holds responsible, in its own word; empty: none named.
	claim string
	// reset goes with claim.
	reset      time.Time
	clocks     []clock
	observedAt time.Time
}

// clock is one window of the headers.
type clock struct {
	id     string
	length time.Duration
	models []string
	// told: there was a utilization, even if used could not be read.
	told     bool
	used     *float64
	reset    time.Time
	rejected bool
}

func readLimits(header http.Header, observedAt time.Time) limits {
	l := limits{observedAt: observedAt}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		suffix, ok := strings.CutPrefix(strings.ToLower(name), headerPrefix)
		if !ok {
			continue
		}
		l.present = true
		for _, figure := range []string{"-status", "-utilization", "-reset"} {
			if window, ok := strings.CutSuffix(suffix, figure); ok {
				l.add(header, window)
			}
		}
	}
	l.rejected = says(header, headerPrefix+"status", rejected)
	l.claim = strings.ToLower(sdk.OneValue(header, headerPrefix+"representative-claim"))
	l.reset = resetOf(header, headerPrefix+"reset", observedAt, 0)
	l.applyClaim()
	return l
}

// add reads the window that the headers call by that name, once; names that mean no window are passed over.
func (l *limits) add(header http.Header, name string) {
	c, ok := newClock(name)
	if !ok || l.clock(c.id) != nil || len(l.clocks) == maxClocks {
		return
	}
	prefix := headerPrefix + name + "-"
	c.told = len(header.Values(prefix+"utilization")) > 0
	c.used = sdk.ParseFraction(sdk.OneValue(header, prefix+"utilization"))
	c.reset = resetOf(header, prefix+"reset", l.observedAt, c.length)
	c.rejected = says(header, prefix+"status", rejected)
	l.clocks = append(l.clocks, c)
}

// applyClaim gives a rejection that named its window by the claim alone to that window.
func (l *limits) applyClaim() {
	if !l.rejected || l.anyRejected() {
		return
	}
	named, ok := clockOfClaim(l.claim)
	if !ok {
		return
	}
	c := l.clock(named.id)
	if c == nil {
		// The window that was named is told before any other.
		l.clocks = append(l.clocks[:min(len(l.clocks), maxClocks-1)], named)
		c = &l.clocks[len(l.clocks)-1]
	}
	c.rejected = true
	if c.reset.IsZero() {
		c.reset = sdk.ResetWithin(l.reset, l.observedAt, c.length)
	}
}

func (l *limits) clock(id string) *clock {
	for i := range l.clocks {
		if l.clocks[i].id == id {
			return &l.clocks[i]
		}
	}
	return nil
}

func (l *limits) anyRejected() bool {
	for _, c := range l.clocks {
		if c.rejected {
			return true
		}
	}
	return false
}

// windows reports the clocks of which something was told; a header that is left out makes nothing unknown that was known.
// Only a rejection exhausts: a hundred percent that is merely shown does not.
func (l limits) windows(rejection sdk.Source) []sdk.Window {
	var windows []sdk.Window
	for _, c := range l.clocks {
		if !c.told && !c.rejected {
			continue
		}
		w := sdk.Window{
			ID: c.id, Kind: c.kind(), Length: c.length, Models: c.models, UsedPercent: c.used, ResetsAt: c.reset,
			State: sdk.StateObserved, Source: sdk.SourceResponseHeader, ObservedAt: l.observedAt,
		}
		switch {
		case c.rejected:
			w.State, w.Source = sdk.StateExhausted, rejection
		case c.used == nil:
			w.State = sdk.StateUnknown
		}
		windows = append(windows, w)
	}
	return windows
}

func (c clock) kind() sdk.WindowKind {
	switch {
	case c.models != nil:
		return sdk.WindowModel
	case c.length == fiveHours:
		return sdk.WindowSession
	}
	return sdk.WindowWeekly
}

// newClock knows the window that the headers call by that name.
func newClock(name string) (clock, bool) {
	switch family, scoped := strings.CutPrefix(name, "7d_"); {
	case scoped:
		return familyClock(family)
	case name == "5h":
		return clock{id: windowFiveHour, length: fiveHours}, true
	case name == "7d":
		return clock{id: windowSevenDay, length: sevenDays}, true
	}
	return clock{}, false
}

// clockOfClaim knows the window by the client's word for it.
func clockOfClaim(claim string) (clock, bool) {
	switch family, scoped := strings.CutPrefix(claim, windowSevenDay+"_"); {
	case scoped:
		return familyClock(family)
	case claim == windowFiveHour:
		return clock{id: windowFiveHour, length: fiveHours}, true
	case claim == windowSevenDay:
		return clock{id: windowSevenDay, length: sevenDays}, true
	}
	return clock{}, false
}

// familyClock is a week of one family of models.
func familyClock(family string) (clock, bool) {
	id := windowSevenDay + "_" + family
	if !claimPattern.MatchString(id) {
		return clock{}, false
	}
	return clock{id: id, length: sevenDays, models: []string{familyPattern(family)}}, true
}

// familyPattern matches the models of a family. The headers call one family by a code of its own.
func familyPattern(family string) string {
	if family == "oi" {
		family = "fable"
	}
	return "*" + family + "*"
}

// says reports whether any value of the header is the word: of contradictory values the stricter one counts.
func says(header http.Header, name, word string) bool {
	for _, value := range header.Values(name) {
		if strings.TrimSpace(value) == word {
			return true
		}
	}
	return false
}

func resetOf(header http.Header, name string, observedAt time.Time, length time.Duration) time.Time {
	at, ok := sdk.ParseUnixSeconds(sdk.OneValue(header, name))
	if !ok {
		return time.Time{}
	}
	return sdk.ResetWithin(at, observedAt, length)
}
