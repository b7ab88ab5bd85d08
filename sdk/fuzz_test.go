package sdk

import (
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func FuzzFigures(f *testing.F) {
	for _, text := range []string{"42", "0.28", "-5", "NaN", "1e3", "0x1p-1", "1_000", "٤٢", "", "99999999999999999999", "1796014800.75"} {
		f.Add(text)
	}
	strict := regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	observed := time.Unix(1_796_000_000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		if value, ok := ParseDecimal(text); ok && (!strict.MatchString(text) || math.IsNaN(value) || math.IsInf(value, 0)) {
			t.Errorf("ParseDecimal(%q) = %v", text, value)
		}
		for _, used := range []*float64{ParsePercent(text), ParseFraction(text)} {
			if used != nil && !(*used >= 0 && *used <= 100) {
				t.Errorf("%q is %v percent", text, *used)
			}
		}
		if at, ok := ParseUnixSeconds(text); ok {
			reset := ResetWithin(at, observed, time.Hour)
			if !reset.IsZero() && (reset.Before(observed.Add(-time.Hour)) || reset.After(observed.Add(2*time.Hour))) {
				t.Errorf("%q resets at %s", text, reset)
			}
		}
		if pause := RetryAfter(http.Header{"Retry-After": {text}}, observed); pause < 0 || pause > maxWithoutLength {
			t.Errorf("%q asks for %s", text, pause)
		}
	})
}

func FuzzBlock(f *testing.F) {
	for _, block := range []string{`{}`, `{"a":"x","b":["y"],"c":{"d":"e"},"f":1,"g":true,"h":"1s"}`, `{"a":null}`, `[]`, `{"a":`, `{"b":[null]}`} {
		f.Add([]byte(block))
	}
	type all struct {
		A string            `hcl:"a" default:"x"`
		B []string          `hcl:"b"`
		C map[string]string `hcl:"c"`
		F int64             `hcl:"f"`
		G bool              `hcl:"g"`
		H time.Duration     `hcl:"h"`
		I Path              `hcl:"i"`
		J Secret            `hcl:"j"`
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		var once, again all
		first, second := decodeBlock(block, &once), decodeBlock(block, &again)
		if (first == nil) != (second == nil) {
			t.Errorf("decodes once with %v and once with %v", first, second)
		}
		schema, err := schemaOf(all{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range checkBlock(block, all{}, schema, "") {
			if d.Summary == "" || d.Detail == "" {
				t.Errorf("diagnostic %+v", d)
			}
		}
	})
}

func FuzzOneLine(f *testing.F) {
	f.Add("two\nlines\x1b[31m\u202e")
	f.Add(strings.Repeat("é", maxErrorText))
	f.Fuzz(func(t *testing.T, text string) {
		line := oneLine(text)
		if len(line) > maxErrorText+utf8.UTFMax || !utf8.ValidString(line) {
			t.Errorf("%d bytes, %q", len(line), line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is not printable", r)
			}
		}
	})
}
