package quota

import (
	"testing"
	"time"
)

func TestAFullWindowNamesWhoSaidSo(t *testing.T) {
	const later = 10 * time.Minute
	reset := start.Add(2 * time.Hour)
	shown := func(percent float64) func(*Account) {
		return func(a *Account) { a.see("5h", percent, reset, -time.Minute) }
	}
	refused := func(a *Account) { a.refuse(Rejection{Cause: CauseQuota, WindowID: "5h", ClearsAt: reset}, "m") }
	reported := func(source Source) func(*Account) {
		return func(a *Account) {
			r := a.reading("5h", 0, reset, 0)
			r.State, r.Source = Exhausted, source
			a.Observe([]Reading{r}, start)
		}
	}
	for name, c := range map[string]struct {
		history    []func(*Account)
		authority  string
		observedAt time.Time
	}{
		"the official client shows it": {
			[]func(*Account){shown(100)}, "official_client", start.Add(-time.Minute)},
		"a rejection, where the client showed room": {
			[]func(*Account){shown(98), refused}, "rejection", start},
		"a rejection, where the client showed it before": {
			[]func(*Account){shown(100), refused}, "rejection", start},
		"a rejection, where the client shows less since": {
			[]func(*Account){shown(98), refused, func(a *Account) { a.see("5h", 98, reset, later) }}, "rejection", start},
		"the headers of an answer": {
			[]func(*Account){shown(98), reported(SourceResponseHeader)}, "response_header", start},
		"the evidence of a rejection": {
			[]func(*Account){shown(98), reported(SourceRejection)}, "rejection", start},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount()
			for _, happens := range c.history {
				happens(a)
			}
			v := a.Views(start.Add(later))[0]
			if v.State != ViewExhausted || *v.UsedPercent != 100 {
				t.Fatalf("%s at %v %%", v.State, *v.UsedPercent)
			}
			if v.Authority != c.authority || !v.ObservedAt.Equal(c.observedAt) {
				t.Errorf("by %s at %v, want %s at %v", v.Authority, v.ObservedAt, c.authority, c.observedAt)
			}
		})
	}
}

func TestAWindowHasOneName(t *testing.T) {
	for name, c := range map[string]struct {
		window Declaration
		want   string
	}{
		"its label":                     {Declaration{ID: "five_hour", Label: "session", Length: 5 * time.Hour}, "session"},
		"its length":                    {Declaration{ID: "five_hour", Length: 5 * time.Hour}, "5h"},
		"its id, without a length":      {Declaration{ID: "credits"}, "credits"},
		"with the models it counts for": {Declaration{ID: "w", Label: "weekly", Models: []string{"opus*", "x"}}, "weekly opus*,x"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Account{Windows: []Window{{Declaration: c.window}}}
			if got := a.WindowName(c.window.ID); got != c.want {
				t.Errorf("name is %q, want %q", got, c.want)
			}
		})
	}
	if got := (&Account{}).WindowName("gone"); got != "gone" {
		t.Errorf("a window that is not there is called %q", got)
	}
}
