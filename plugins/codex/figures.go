package codex

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// limit is one set of clocks: that of the account, or a named one that is about some models only.
type limit struct {
	// id as the provider spells it; empty for the account's.
	id string
	// name of a named limit, which is also that of its model; empty when it was not told.
	name string
}

// newLimit knows the account's limit by the names that it goes by. All others are named codex_<something>.
func newLimit(id, name string) limit {
	id = strings.ToLower(id)
	if !strings.HasPrefix(id, "codex_") {
		return limit{}
	}
	return limit{id: id, name: strings.ToLower(name)}
}

func (l limit) named() bool { return l.id != "" }

// plain matches what may become a window's id or a model's name.
var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// figures are what a source tells of one clock. Each source spells them in its own way.
type figures struct {
	// told: there was a percentage, even if used could not be read.
	told    bool
	used    *float64
	minutes int64
	reset   time.Time
}

const week = 7 * 24 * time.Hour

// maxMinutes is the longest window that is believed.
const maxMinutes = 366 * 24 * 60

// window makes a window of its figures: meaning comes from the length, never from the slot. Without a length there is no
// window, and none of a named limit whose models are not known: it must not be taken for the account's.
func (f figures) window(l limit, observedAt time.Time) (sdk.Window, bool) {
	if f.minutes <= 0 || f.minutes > maxMinutes {
		return sdk.Window{}, false
	}
	length := time.Duration(f.minutes) * time.Minute
	w := sdk.WindowOf(length)
	w.UsedPercent, w.ResetsAt, w.State, w.ObservedAt = f.used, f.reset, sdk.StateObserved, observedAt
	if !f.reset.IsZero() {
		w.ResetsAt = sdk.ResetWithin(f.reset, observedAt, length)
	}
	if l.named() {
		if !plain.MatchString(l.id) || !plain.MatchString(l.name) {
			return sdk.Window{}, false
		}
		w.ID, w.Kind, w.Models = l.id+":"+w.ID, sdk.WindowModel, []string{l.name}
		w.Label = l.name + " " + sdk.WindowLabel(length)
	}
	switch {
	case !f.told:
		w.State = sdk.StateNotExposed
	case f.used == nil:
		w.State = sdk.StateUnknown
	}
	return w, true
}

// spent reports whether nothing is left of a window.
func spent(w sdk.Window) bool { return w.UsedPercent != nil && *w.UsedPercent >= 100 }

// exhaust marks the spent windows of a source that says that a limit was reached. A hundred percent that is merely shown
// is rounded and exhausts nothing.
func exhaust(windows []sdk.Window) {
	for i := range windows {
		if spent(windows[i]) {
			windows[i].State = sdk.StateExhausted
		}
	}
}

// number reads a JSON number strictly: no string, no bool, no exponent.
func number(raw json.RawMessage) (float64, bool) { return sdk.ParseDecimal(string(raw)) }

func percentOf(raw json.RawMessage) *float64 {
	value, ok := number(raw)
	if !ok {
		return nil
	}
	return sdk.PercentOf(value)
}

// given reports whether a field is there at all.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// wholeOf reads a JSON number that counts something; 0 when it does not.
func wholeOf(raw json.RawMessage) int64 { return whole(string(raw)) }

func whole(text string) int64 {
	// Whole numbers of any unit are read by the same rule as seconds.
	at, ok := sdk.ParseUnixSeconds(text)
	if !ok {
		return 0
	}
	return at.Unix()
}

// unixOf reads seconds since 1970; 0 stands for none.
func unixOf(raw json.RawMessage) time.Time {
	seconds := wholeOf(raw)
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// headerLimits reads the x-codex-* headers of an answer. Those without a name in them are about the limit that the answer
// calls active.
func headerLimits(header http.Header, observedAt time.Time) (active limit, windows []sdk.Window) {
	id := sdk.OneValue(header, "x-codex-active-limit")
	active = headerLimit(header, id)
	windows = slotWindows(header, "x-codex-", active, observedAt)
	for _, family := range families(header) {
		l := headerLimit(header, "codex_"+strings.ReplaceAll(family, "-", "_"))
		for _, w := range slotWindows(header, "x-codex-"+family+"-", l, observedAt) {
			if !slices.ContainsFunc(windows, func(other sdk.Window) bool { return other.ID == w.ID }) {
				windows = append(windows, w)
			}
		}
	}
	for i := range windows {
		windows[i].Source = sdk.SourceResponseHeader
	}
	return active, windows
}

func headerLimit(header http.Header, id string) limit {
	family := strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(id), "codex_"), "_", "-")
	return newLimit(id, sdk.OneValue(header, "x-codex-"+family+"-limit-name"))
}

// maxFamilies bounds the named limits of one answer.
const maxFamilies = 6

var familyHeader = regexp.MustCompile(`^x-codex-([a-z0-9-]+)-primary-used-percent$`)

func families(header http.Header) []string {
	var found []string
	for _, name := range sortedNames(header) {
		if match := familyHeader.FindStringSubmatch(name); match != nil && len(found) < maxFamilies {
			found = append(found, match[1])
		}
	}
	return found
}

func slotWindows(header http.Header, prefix string, l limit, observedAt time.Time) []sdk.Window {
	var windows []sdk.Window
	for _, slot := range []string{"primary-", "secondary-"} {
		value := func(name string) string { return sdk.OneValue(header, prefix+slot+name) }
		f := figures{
			told: len(header.Values(prefix+slot+"used-percent")) > 0,
			used: sdk.ParsePercent(value("used-percent")), minutes: whole(value("window-minutes")),
		}
		if seconds := whole(value("reset-at")); seconds > 0 {
			f.reset = time.Unix(seconds, 0).UTC()
		} else if seconds := whole(value("reset-after-seconds")); seconds > 0 {
			f.reset = observedAt.Add(time.Duration(seconds) * time.Second)
		}
		if w, ok := f.window(l, observedAt); ok {
			windows = append(windows, w)
		}
	}
	return windows
}
