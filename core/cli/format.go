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

// in is how far a time is ahead, with the time of day; empty for none.
func (p *Program) in(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	left := t.Sub(p.Now())
	if left <= 0 {
		return "now"
	}
	layout := "15:04"
	if left > 20*time.Hour {
		layout = "Mon 15:04"
	}
	if left > 6*24*time.Hour {
		layout = "2 Jan 15:04"
	}
	return fmt.Sprintf("in %s (%s)", span(left), t.In(p.Location).Format(layout))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
