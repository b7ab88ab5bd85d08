package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scanIn scans a document in pieces of size and gives the values found.
func scanIn(t testing.TB, document string, size int, pointers ...string) []field {
	t.Helper()
	var wanted []pointer
	for _, p := range pointers {
		compiled, err := compilePointer(p)
		if err != nil {
			t.Fatalf("pointer %s: %v", p, err)
		}
		wanted = append(wanted, compiled)
	}
	s := newFieldScan(wanted, nil)
	for rest := []byte(document); len(rest) > 0; {
		n := min(size, len(rest))
		if !s.feed(rest[:n]) {
			break
		}
		rest = rest[n:]
	}
	s.finish()
	return s.values
}

func TestFieldsAreFoundWhereThePointersSay(t *testing.T) {
	const absent = "\x00absent"
	tests := []struct {
		name, document, pointer, want string
	}{
		{"a string", `{"model":"m"}`, "/model", "m"},
		{"behind others", `{"a":1,"b":{"model":"no"},"c":["x",{"model":"no"}],"model":"m"}`, "/model", "m"},
		{"a number as it is written", `{"n": -1.50e3 }`, "/n", "-1.50e3"},
		{"a number at the end", `5`, "/n", absent},
		{"true", `{"stream":true}`, "/stream", "true"},
		{"null is none", `{"model":null}`, "/model", absent},
		{"an object is none", `{"model":{"a":1}}`, "/model", absent},
		{"an array is none", `{"model":[1]}`, "/model", absent},
		{"an empty string is one", `{"model":""}`, "/model", ""},
		{"deeper", `{"metadata":{"x":1,"user_id":"u"},"user_id":"no"}`, "/metadata/user_id", "u"},
		{"deeper through other containers", `{"metadata":[],"metadata":{"user_id":"u"}}`, "/metadata/user_id", "u"},
		{"in an array", `{"a":[{"b":1},{"b":2}]}`, "/a/1/b", "2"},
		{"an empty array", `{"a":[ ],"b":"x"}`, "/b", "x"},
		{"an empty object", `{"a":{ },"b":"x"}`, "/b", "x"},
		{"escapes in the value", `{"a":"\"\\\u00e9\n"}`, "/a", "\"\\é\n"},
		{"escapes in the key", `{"\u0061":"x"}`, "/a", "x"},
		{"escapes in skipped strings", `{"t":"\\\" \"}{[\\","a":"x"}`, "/a", "x"},
		{"a slash in the key", `{"a/b":{"m~n":"x"}}`, "/a~1b/m~0n", "x"},
		{"an empty key", `{"":"x"}`, "/", "x"},
		{"the first of two", `{"a":"1","a":"2"}`, "/a", "1"},
		{"white space everywhere", " {\n\t\"a\" :\r\n \"x\" , \"b\":[ 1 , 2 ] }", "/a", "x"},
		{"text instead of JSON", `model: m`, "/model", absent},
		{"a document that is cut", `{"a":"x`, "/a", absent},
		{"an array at the top", `["x"]`, "/0", "x"},
		{"a string at the top", `"x"`, "/a", absent},
		{"brackets that do not match", `{"b":[1}],"a":"x"}`, "/a", absent},
		{"a value that is too long", `{"a":"` + strings.Repeat("x", maxFieldBytes+1) + `","b":"y"}`, "/a", absent},
		{"behind a value that is too long", `{"a":"` + strings.Repeat("x", maxFieldBytes+1) + `","b":"y"}`, "/b", "y"},
		{"behind a key that is too long", `{"` + strings.Repeat("x", maxKeyBytes+1) + `":1,"b":"y"}`, "/b", "y"},
		{"behind deep nesting", `{"d":` + strings.Repeat("[", maxScanDepth) + strings.Repeat("]", maxScanDepth) + `,"a":"x"}`, "/a", "x"},
		{"behind nesting that is too deep", `{"d":` + strings.Repeat("[", maxScanDepth+1) + strings.Repeat("]", maxScanDepth+1) + `,"a":"x"}`, "/a", absent},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "/a", "\xff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, len(tt.document)} {
				got := absent
				if f := scanIn(t, tt.document, size, tt.pointer)[0]; f.ok {
					got = f.value
				}
				if got != tt.want {
					t.Errorf("in pieces of %d: %.60q, want %.60q", size, got, tt.want)
				}
			}
		})
	}
}

func TestTheScanStopsWhenItHasEnough(t *testing.T) {
	model, err := compilePointer("/model")
	if err != nil {
		t.Fatal(err)
	}
	s := newFieldScan([]pointer{model}, nil)
	if s.feed([]byte(`{"model":"m",`)) {
		t.Error("wants more after it found all")
	}
}

// TestTheScanAgreesWithAParser holds for any document: what the scan finds is what encoding/json finds.
func TestTheScanAgreesWithAParser(t *testing.T) {
	keys := rapid.SampledFrom([]string{"a", "b", "model", "", "x/y", "ü\n"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		options := []*rapid.Generator[any]{
			rapid.Map(rapid.StringN(0, 12, -1), func(s string) any { return s }),
			rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return json.Number(strconv.Itoa(n)) }),
			rapid.Just[any](true), rapid.Just[any](nil),
		}
		if depth > 0 {
			options = append(options,
				rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(a []any) any { return a }),
				rapid.Map(rapid.MapOfN(keys, value(depth-1), 0, 4), func(m map[string]any) any { return m }))
		}
		return rapid.OneOf(options...)
	}
	rapid.Check(t, func(t *rapid.T) {
		document := value(4).Draw(t, "document")
		raw, err := json.Marshal(document)
		if err != nil {
			t.Skip("no JSON")
		}
		tokens := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "model", "", "x/y", "ü\n", "0", "1"}), 1, 4).Draw(t, "pointer")
		size := rapid.IntRange(1, 9).Draw(t, "size")
		s := newFieldScan([]pointer{tokens}, nil)
		for rest := raw; len(rest) > 0; {
			n := min(size, len(rest))
			s.feed(rest[:n])
			rest = rest[n:]
		}
		s.finish()
		if want := lookUp(document, tokens); fmt.Sprint(s.values[0]) != fmt.Sprint(want) {
			t.Fatalf("%q in %s: found %v, want %v", tokens, raw, s.values[0], want)
		}
	})
}

// lookUp follows a pointer through a parsed document.
func lookUp(document any, tokens []string) field {
	for _, token := range tokens {
		switch d := document.(type) {
		case map[string]any:
			document = d[token]
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n >= len(d) {
				return field{}
			}
			document = d[n]
		default:
			return field{}
		}
	}
	switch d := document.(type) {
	case string:
		return field{d, true}
	case json.Number:
		return field{d.String(), true}
	case bool:
		return field{strconv.FormatBool(d), true}
	}
	return field{}
}

func TestPointersAreChecked(t *testing.T) {
	for _, bad := range []string{"", "model", "/a~", "/a~2", "/" + strings.Repeat("x", maxPointerBytes), strings.Repeat("/a", maxPointerTokens+1)} {
		if _, err := compilePointer(bad); err == nil {
			t.Errorf("%.20q: no error", bad)
		}
	}
}

func FuzzFieldScan(f *testing.F) {
	f.Add([]byte(`{"model":"m","metadata":{"user_id":"u"}}`), 3)
	if deep, err := os.ReadFile("testdata/hostile/bodies/b01-deep.json"); err == nil {
		f.Add(deep, 1000)
	}
	wanted := []pointer{{"model"}, {"metadata", "user_id"}, {"a", "0", "b"}}
	f.Fuzz(func(t *testing.T, document []byte, size int) {
		size = max(size, 1)
		whole, parts := newFieldScan(wanted, nil), newFieldScan(wanted, nil)
		whole.feed(document)
		whole.finish()
		for rest := document; len(rest) > 0; {
			n := min(size, len(rest))
			parts.feed(rest[:n])
			rest = rest[n:]
		}
		parts.finish()
		for i := range wanted {
			if whole.values[i] != parts.values[i] {
				t.Errorf("%v: %v in one, %v in pieces of %d", wanted[i], whole.values[i], parts.values[i], size)
			}
		}
		if cap(parts.text) > 2*maxFieldBytes+64 || len(parts.frames) > maxPointerTokens+1 {
			t.Errorf("keeps %d bytes and %d frames", cap(parts.text), len(parts.frames))
		}
	})
}
