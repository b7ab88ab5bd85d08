package cli

import (
	"fmt"
	"strconv"
	"time"
)

// span is a duration as people say it: its two greatest units.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	}
	return units(d, 24*time.Hour, "d", time.Hour, "h")
}

func units(d, great time.Duration, greatName string, small time.Duration, smallName string) string {
	text := strconv.FormatInt(int64(d/great), 10) + greatName
	if rest := d % great / small; rest > 0 {
		text += strconv.FormatInt(int64(rest), 10) + smallName
	}
	return text
}

// ago is how long a time is past; empty for none.
func (p *Program) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(p.Now().Sub(t)) + " ago"
}

// in is how far a time is ahead, with the time itself; empty for none.
func (p *Program) in(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	left := t.Sub(p.Now())
	if left <= 0 {
		return "now"
	}
	return fmt.Sprintf("in %s (%s)", span(left), p.clock(t, "15:04"))
}

// when is a time, with how far it is ahead.
func (p *Program) when(t time.Time) string {
	left := t.Sub(p.Now())
	if left <= 0 {
		return p.clock(t, "15:04")
	}
	return fmt.Sprintf("%s (in %s)", p.clock(t, "15:04"), span(left))
}

// clock is a time of day in that layout, with the date when it is not today's.
func (p *Program) clock(t time.Time, layout string) string {
	t, now := t.In(p.Location), p.Now().In(p.Location)
	switch {
	case t.Year() != now.Year():
		layout = "2 Jan 2006 " + layout
	case t.YearDay() != now.YearDay():
		layout = "Mon 2 Jan " + layout
	}
	return t.Format(layout)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
