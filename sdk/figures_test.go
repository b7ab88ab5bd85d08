package sdk

import (
	"math"
	"net/http"
	"testing"
	"time"
)

func TestParseDecimalTakesStrictDecimalsOnly(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "0.42": 0.42, "-0.5": -0.5, "100": 100, "1.01": 1.01} {
		if got, ok := ParseDecimal(text); !ok || got != want {
			t.Errorf("ParseDecimal(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1.", ".5", "1e3", "0x1p-1", "0_1", "42%", "NaN", "nan", "Inf", "-inf", "+1", " 1", "1 ", "1.2.3",
		"--1", "٠٫٤٢", "99999999999999999999999999999999999",
	} {
		if got, ok := ParseDecimal(text); ok {
			t.Errorf("ParseDecimal(%q) = %v, want a refusal", text, got)
		}
	}
}

func TestPercentOfClampsOvershootAndRefusesOtherUnits(t *testing.T) {
	for in, want := range map[float64]float64{0: 0, 42.5: 42.5, 100: 100, 101: 100, 104: 100, 110: 100, -3: 0, -10: 0} {
		if got := PercentOf(in); got == nil || *got != want {
			t.Errorf("PercentOf(%v) = %v, want %v", in, got, want)
		}
	}
	for _, in := range []float64{110.1, 250, 2370, -10.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := PercentOf(in); got != nil {
			t.Errorf("PercentOf(%v) = %v, want unknown", in, *got)
		}
	}
}

func TestResetOutsideTheWindowIsUnknown(t *testing.T) {
	observed := time.Unix(1796000000, 0)
	const length = 5 * time.Hour
	cases := []struct {
		name   string
		reset  time.Time
		length time.Duration
		known  bool
	}{
		{"an hour early", observed.Add(-time.Hour), length, true},
		{"more than an hour early", observed.Add(-time.Hour - time.Second), length, false},
		{"an hour beyond the length", observed.Add(6 * time.Hour), length, true},
		{"more than an hour beyond the length", observed.Add(6*time.Hour + time.Second), length, false},
		{"within a year without a length", observed.Add(300 * 24 * time.Hour), 0, true},
		{"beyond a year without a length", observed.Add(400 * 24 * time.Hour), 0, false},
		{"seconds read as milliseconds", time.UnixMilli(observed.Unix()), length, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := ResetWithin(c.reset, observed, c.length); got.IsZero() == c.known {
				t.Errorf("ResetWithin = %v, want known %v", got, c.known)
			}
		})
	}
}

func TestWindowLabelIsNamedByLength(t *testing.T) {
	for length, want := range map[time.Duration]string{
		5 * time.Hour: "5h", 168 * time.Hour: "weekly", time.Hour: "1h", 24 * time.Hour: "1d", 30 * 24 * time.Hour: "30d",
		90 * time.Minute: "90min", 0: "", 30 * time.Second: "", -time.Hour: "",
	} {
		if got := WindowLabel(length); got != want {
			t.Errorf("WindowLabel(%v) = %q, want %q", length, got, want)
		}
	}
}

func TestRetryAfterIsBoundedAndNeverNegative(t *testing.T) {
	now := time.Date(2026, 11, 30, 4, 59, 0, 0, time.UTC)
	cases := []struct {
		name   string
		header http.Header
		want   time.Duration
	}{
		{"absent", http.Header{}, 0},
		{"seconds", http.Header{"Retry-After": {"30"}}, 30 * time.Second},
		{"a fraction", http.Header{"Retry-After": {"1.5"}}, 1500 * time.Millisecond},
		{"milliseconds win", http.Header{"Retry-After": {"30"}, "Retry-After-Ms": {"4000"}}, 4 * time.Second},
		{"a date", http.Header{"Retry-After": {"Mon, 30 Nov 2026 05:00:00 GMT"}}, time.Minute},
		{"a date that is over", http.Header{"Retry-After": {"Mon, 01 Jan 2001 00:00:00 GMT"}}, 0},
		{"negative", http.Header{"Retry-After": {"-5"}}, 0},
		{"huge", http.Header{"Retry-After": {"99999999999999"}}, 0},
		{"no number", http.Header{"Retry-After": {"soon"}}, 0},
		{"sent twice with different values", http.Header{"Retry-After": {"1", "2"}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := RetryAfter(c.header, now); got != c.want {
				t.Errorf("RetryAfter = %v, want %v", got, c.want)
			}
		})
	}
}

func TestOneValueRefusesContradictions(t *testing.T) {
	header := http.Header{"A": {" 1 "}, "Same": {"x", "x"}, "Other": {"x", "y"}}
	for name, want := range map[string]string{"a": "1", "same": "x", "other": "", "none": ""} {
		if got := OneValue(header, name); got != want {
			t.Errorf("OneValue(%q) = %q, want %q", name, got, want)
		}
	}
}
