package cli

import (
	"testing"
	"time"
)

func TestTimesAreLocalWithADateWhenItIsNotToday(t *testing.T) {
	location := time.FixedZone("made up", -5*3600)
	now := time.Date(2026, 12, 30, 23, 30, 0, 0, location)
	p := &Program{Now: func() time.Time { return now.UTC() }, Location: location}
	for _, c := range []struct {
		rule     string
		at       time.Time
		in, when string
	}{
		{"later today", now.Add(20 * time.Minute), "in 20m (23:50)", "23:50 (in 20m)"},
		{"tomorrow, though in less than an hour", now.Add(45 * time.Minute), "in 45m (Thu 31 Dec 00:15)", "Thu 31 Dec 00:15 (in 45m)"},
		{"next year", now.Add(25 * time.Hour), "in 1d1h (1 Jan 2027 00:30)", "1 Jan 2027 00:30 (in 1d1h)"},
		{"a moment ago", now.Add(-time.Minute), "now", "23:29"},
		{"yesterday", now.Add(-24 * time.Hour), "now", "Tue 29 Dec 23:30"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := p.in(c.at.UTC()); got != c.in {
				t.Errorf("in is %q, want %q", got, c.in)
			}
			if got := p.when(c.at.UTC()); got != c.when {
				t.Errorf("when is %q, want %q", got, c.when)
			}
		})
	}
	if got := p.in(time.Time{}); got != "" {
		t.Errorf("no time is %q", got)
	}
}
