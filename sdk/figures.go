package sdk

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseDecimal reads a strict decimal: an optional minus, digits, and at most one point with digits on both sides. Unlike
// strconv.ParseFloat it takes no exponent, no hex, no underscore, no NaN and no infinity.
func ParseDecimal(text string) (value float64, ok bool) {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, pointed := strings.Cut(digits, ".")
	if !onlyDigits(whole) || (pointed && !onlyDigits(fraction)) || len(digits) > 32 {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil
}

// ParseUnixSeconds reads a whole number of seconds since 1970.
func ParseUnixSeconds(text string) (at time.Time, ok bool) {
	if !onlyDigits(text) || len(text) > 12 {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err == nil
}

func onlyDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// ParsePercent reads a percentage for [Window.UsedPercent]; see [PercentOf].
func ParsePercent(text string) *float64 {
	value, ok := ParseDecimal(text)
	if !ok {
		return nil
	}
	return PercentOf(value)
}

// ParseFraction reads a fraction, where 1 is all, for [Window.UsedPercent]; see [PercentOf].
func ParseFraction(text string) *float64 {
	if _, ok := ParseDecimal(text); !ok {
		return nil
	}
	// The text is multiplied, not the number: 0.28 times 100 is not 28.
	value, err := strconv.ParseFloat(text+"e2", 64)
	if err != nil {
		return nil
	}
	return PercentOf(value)
}

// PercentOf clamps a percentage to 0..100. Providers overshoot a little; beyond 110 or below -10, or when it is not
// finite, the figure is in some other unit and nil is returned: nothing is invented from it.
func PercentOf(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < -10 || value > 110 {
		return nil
	}
	value = min(max(value, 0), 100)
	return &value
}

// maxWithoutLength bounds a reset of a window whose length is not stated.
const maxWithoutLength = 366 * 24 * time.Hour

// ResetWithin returns reset when it lies within an hour of the window that was observed, else the zero time: unknown.
// length is 0 when the provider states none.
func ResetWithin(reset, observed time.Time, length time.Duration) time.Time {
	if length <= 0 {
		length = maxWithoutLength
	}
	if reset.Before(observed.Add(-time.Hour)) || reset.After(observed.Add(length+time.Hour)) {
		return time.Time{}
	}
	return reset
}

// WindowLabel names a window by its length: 5h, 1d, weekly. A length that is no whole number of minutes or absent has no
// label.
func WindowLabel(length time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case length <= 0 || length%time.Minute != 0:
		return ""
	case length == 7*day:
		return "weekly"
	case length%day == 0:
		return strconv.FormatInt(int64(length/day), 10) + "d"
	case length%time.Hour == 0:
		return strconv.FormatInt(int64(length/time.Hour), 10) + "h"
	}
	return strconv.FormatInt(int64(length/time.Minute), 10) + "min"
}

// OneValue returns the value of a header, trimmed, or "" when it is absent or was sent with different values.
func OneValue(header http.Header, name string) string {
	values := header.Values(name)
	if len(values) == 0 {
		return ""
	}
	for _, other := range values[1:] {
		if other != values[0] {
			return ""
		}
	}
	return strings.TrimSpace(values[0])
}

// RetryAfter reads the pause that an answer asks for: retry-after-ms, or retry-after as seconds or as an HTTP date. It is
// 0 when there is none, or none that lies between now and a year from now.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, ok := ParseDecimal(OneValue(header, "Retry-After-Ms")); ok {
		return pause(ms / 1000)
	}
	text := OneValue(header, "Retry-After")
	if seconds, ok := ParseDecimal(text); ok {
		return pause(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return pause(at.Sub(now).Seconds())
	}
	return 0
}

func pause(seconds float64) time.Duration {
	if seconds <= 0 || seconds > maxWithoutLength.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
