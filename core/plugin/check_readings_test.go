package plugin

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

var (
	testNow   = time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	testCheck = &answerCheck{redactor: events.NewRedactor()}
)

// window is a sound observed five-hour window, changed.
func window(change func(*providerv1.Window)) *providerv1.Window {
	used := 42.0
	w := &providerv1.Window{
		WindowId: "5h", Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING, LengthSeconds: 18000, UsedPercent: &used,
		ResetsAt: timestamppb.New(testNow.Add(time.Hour)), State: providerv1.WindowState_WINDOW_STATE_OBSERVED,
		Source: providerv1.Source_SOURCE_OFFICIAL_CLIENT, ObservedAt: timestamppb.New(testNow),
	}
	change(w)
	return w
}

func used(v float64) func(*providerv1.Window) {
	return func(w *providerv1.Window) { w.UsedPercent = &v }
}

func resets(t time.Time) func(*providerv1.Window) {
	return func(w *providerv1.Window) { w.ResetsAt = timestamppb.New(t) }
}

func both(changes ...func(*providerv1.Window)) func(*providerv1.Window) {
	return func(w *providerv1.Window) {
		for _, change := range changes {
			change(w)
		}
	}
}

func exhausted(w *providerv1.Window) { w.State = providerv1.WindowState_WINDOW_STATE_EXHAUSTED }

func TestReadingOfAWindow(t *testing.T) {
	type want struct {
		state  quota.ReportedState
		used   float64
		has    bool
		resets bool
	}
	sound := want{quota.Observed, 42, true, true}
	cases := []struct {
		name   string
		change func(*providerv1.Window)
		want   want
	}{
		{"sound", func(*providerv1.Window) {}, sound},
		{"a little over is full, and only shown so", used(104), want{quota.Observed, 100, true, true}},
		{"exactly full is not exhausted by itself", used(100), want{quota.Observed, 100, true, true}},
		{"a little under is empty", used(-3), want{quota.Observed, 0, true, true}},
		{"far over is a unit error", used(250), want{quota.Unknown, 0, false, true}},
		{"far under is a unit error", used(-11), want{quota.Unknown, 0, false, true}},
		{"not a number", used(math.NaN()), want{quota.Unknown, 0, false, true}},
		{"infinite", used(math.Inf(1)), want{quota.Unknown, 0, false, true}},
		{"infinitely little", used(math.Inf(-1)), want{quota.Unknown, 0, false, true}},
		{"negative zero is zero", used(math.Copysign(0, -1)), want{quota.Observed, 0, true, true}},
		{"a broken number takes exhaustion away too", both(used(math.NaN()), exhausted), want{quota.Unknown, 0, false, true}},
		{"absent is unknown, not zero", func(w *providerv1.Window) { w.UsedPercent = nil }, want{quota.Unknown, 0, false, true}},
		{"exhausted needs no percentage", func(w *providerv1.Window) { w.UsedPercent = nil; exhausted(w) }, want{quota.Exhausted, 0, false, true}},
		{"exhausted wins over what is shown", both(used(3), exhausted), want{quota.Exhausted, 3, true, true}},
		{"reset in milliseconds", resets(time.Unix(1796014800000, 0)), want{quota.Observed, 42, true, false}},
		{"reset long past", resets(time.Unix(1577836800, 0)), want{quota.Observed, 42, true, false}},
		{"exhausted until long past is not exhausted", both(exhausted, resets(time.Unix(1577836800, 0))), want{quota.Unknown, 0, false, false}},
		{"reset within the slack before", resets(testNow.Add(-59 * time.Minute)), sound},
		{"reset within the slack after", resets(testNow.Add(5*time.Hour + 59*time.Minute)), sound},
		{"reset beyond length and slack", resets(testNow.Add(6*time.Hour + time.Second)), want{quota.Observed, 42, true, false}},
		{"reset in year one", func(w *providerv1.Window) { w.ResetsAt = &timestamppb.Timestamp{Seconds: -62135596800} }, want{quota.Observed, 42, true, false}},
		{"reset that is no time", func(w *providerv1.Window) { w.ResetsAt = &timestamppb.Timestamp{Seconds: math.MaxInt64, Nanos: -1} }, want{quota.Observed, 42, true, false}},
		{"reset absent", func(w *providerv1.Window) { w.ResetsAt = nil }, want{quota.Observed, 42, true, false}},
		{"without a length a reset may be a year away", both(func(w *providerv1.Window) { w.LengthSeconds = 0 }, resets(testNow.AddDate(0, 11, 0))), sound},
		{"length of ages", func(w *providerv1.Window) { w.LengthSeconds = math.MaxInt64 }, want{quota.Unknown, 0, false, true}},
		{"negative length", func(w *providerv1.Window) { w.LengthSeconds = -1 }, want{quota.Unknown, 0, false, true}},
		{"state that is not known", func(w *providerv1.Window) { w.State = 99 }, want{quota.Unknown, 0, false, true}},
		{"pending carries no percentage", func(w *providerv1.Window) { w.State = providerv1.WindowState_WINDOW_STATE_PENDING }, want{quota.Pending, 0, false, true}},
		{"awaiting first use may say zero", both(used(0), func(w *providerv1.Window) { w.State = providerv1.WindowState_WINDOW_STATE_AWAITING_FIRST_USE }), want{quota.AwaitingFirstUse, 0, true, true}},
		{"a scope of which nothing is left is no window for all models", func(w *providerv1.Window) { w.Models = []string{""} }, want{quota.Unknown, 0, false, true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := testCheck.readings([]*providerv1.Window{window(c.change)}, quota.SourceOfficialClient, testNow)
			if len(got) != 1 {
				t.Fatalf("%d readings, want one", len(got))
			}
			r := got[0]
			if seen := (want{r.State, r.UsedPercent, r.HasUsed, !r.ResetsAt.IsZero()}); seen != c.want {
				t.Errorf("got %+v, want %+v", seen, c.want)
			}
			if math.Signbit(r.UsedPercent) {
				t.Error("negative zero")
			}
		})
	}
}

func TestWindowWithoutUsableNameIsLeftOut(t *testing.T) {
	for name, change := range map[string]func(*providerv1.Window){
		"no id":            func(w *providerv1.Window) { w.WindowId = "" },
		"escape in the id": func(w *providerv1.Window) { w.WindowId = "5h\x1b[2J" },
		"id of 65 bytes":   func(w *providerv1.Window) { w.WindowId = strings.Repeat("x", 65) },
		"no kind":          func(w *providerv1.Window) { w.Kind = 0 },
		"kind of tomorrow": func(w *providerv1.Window) { w.Kind = 99 },
	} {
		t.Run(name, func(t *testing.T) {
			if got := testCheck.readings([]*providerv1.Window{window(change), nil}, quota.SourceOfficialClient, testNow); len(got) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestReadingsAreBoundedAndDistinct(t *testing.T) {
	var many []*providerv1.Window
	for i := range 1000 {
		many = append(many, window(func(w *providerv1.Window) { w.WindowId = string(rune('a'+i%26)) + strings.Repeat("x", i/26) }))
	}
	if got := testCheck.readings(many, quota.SourceOfficialClient, testNow); len(got) != quota.MaxWindows {
		t.Errorf("%d readings, want %d", len(got), quota.MaxWindows)
	}
	twice := []*providerv1.Window{window(used(1)), window(used(2))}
	if got := testCheck.readings(twice, quota.SourceOfficialClient, testNow); len(got) != 1 || got[0].UsedPercent != 1 {
		t.Errorf("got %+v, want the first of one id", got)
	}
}

func TestReadingIsNeverNewerThanItsQuestion(t *testing.T) {
	cases := []struct {
		name    string
		claimed *timestamppb.Timestamp
		want    time.Time
	}{
		{"absent", nil, testNow},
		{"older is kept", timestamppb.New(testNow.Add(-time.Minute)), testNow.Add(-time.Minute)},
		{"newer is not", timestamppb.New(testNow.Add(time.Minute)), testNow},
		{"months old is not believed", timestamppb.New(testNow.AddDate(0, -3, 0)), testNow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := window(func(w *providerv1.Window) { w.ObservedAt = c.claimed })
			if got := testCheck.readings([]*providerv1.Window{w}, quota.SourceOfficialClient, testNow)[0].ObservedAt; !got.Equal(c.want) {
				t.Errorf("observed at %v, want %v", got, c.want)
			}
		})
	}
}

func TestRejectionIsASourceOfRejectionsOnly(t *testing.T) {
	w := []*providerv1.Window{window(func(w *providerv1.Window) { w.Source = providerv1.Source_SOURCE_REJECTION })}
	if got := testCheck.readings(w, quota.SourceResponseHeader, testNow)[0].Source; got != quota.SourceResponseHeader {
		t.Errorf("source of an observation = %s", got)
	}
	if got := testCheck.readings(w, quota.SourceRejection, testNow)[0].Source; got != quota.SourceRejection {
		t.Errorf("source of a rejection = %s", got)
	}
}

func TestModelThatLooksLikeACredentialIsReplaced(t *testing.T) {
	w := window(func(w *providerv1.Window) { w.Models = []string{canary, "opus\x1b[2J"} })
	got := testCheck.readings([]*providerv1.Window{w}, quota.SourceOfficialClient, testNow)[0].Models
	if len(got) != 2 || got[0] != events.Redacted || got[1] != "opus?[2J" {
		t.Errorf("models = %q", got)
	}
}

// sane is what must be true of every reading, whatever was answered.
func sane(t rapid.TB, readings []quota.Reading) {
	if len(readings) > quota.MaxWindows {
		t.Fatalf("%d readings", len(readings))
	}
	for _, r := range readings {
		if math.IsNaN(r.UsedPercent) || r.UsedPercent < 0 || r.UsedPercent > 100 {
			t.Fatalf("used %v", r.UsedPercent)
		}
		if y := r.ResetsAt.Year(); !r.ResetsAt.IsZero() && (y < 2025 || y > 2028) {
			t.Fatalf("reset in year %d", y)
		}
		if r.Length < 0 || r.Length > maxLength || r.ObservedAt.After(testNow) {
			t.Fatalf("length %v, observed %v", r.Length, r.ObservedAt)
		}
		for _, text := range append([]string{r.ID, r.Label, string(r.State), string(r.Kind), string(r.Source)}, r.Models...) {
			if !printable.IsLine(text, maxModelBytes) {
				t.Fatalf("text %q", text)
			}
		}
		if r.State == quota.Unknown && r.HasUsed {
			t.Fatal("unknown with a percentage")
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("write reading: %v", err)
		}
		var back quota.Reading
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("read back: %v", err)
		}
	}
}

func TestAnyWindowMakesSaneReadings(t *testing.T) {
	windows := rapid.SliceOfN(rapid.Custom(anyWindow), 0, 20)
	rapid.Check(t, func(t *rapid.T) {
		for range 100 { // rapid makes a hundred of these: 10,000 answers
			sane(t, testCheck.readings(windows.Draw(t, "windows"), quota.SourceOfficialClient, testNow))
		}
	})
}

func anyWindow(t *rapid.T) *providerv1.Window {
	if rapid.IntRange(0, 30).Draw(t, "nil") == 0 {
		return nil
	}
	w := &providerv1.Window{
		WindowId:      rapid.OneOf(rapid.StringMatching(`[a-z0-9]{1,8}`), rapid.String()).Draw(t, "id"),
		Kind:          providerv1.WindowKind(rapid.Int32Range(-1, 10).Draw(t, "kind")),
		LengthSeconds: rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 700000)).Draw(t, "length"),
		Models:        rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "models"),
		State:         providerv1.WindowState(rapid.Int32Range(-1, 8).Draw(t, "state")),
		Source:        providerv1.Source(rapid.Int32Range(-1, 7).Draw(t, "source")),
		Label:         rapid.String().Draw(t, "label"),
		ResetsAt:      anyTime(t, "resets"),
		ObservedAt:    anyTime(t, "observed"),
	}
	if rapid.Bool().Draw(t, "has used") {
		v := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-20, 130),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324})).Draw(t, "used")
		w.UsedPercent = &v
	}
	return w
}

func anyTime(t *rapid.T, label string) *timestamppb.Timestamp {
	if rapid.Bool().Draw(t, label+" nil") {
		return nil
	}
	return &timestamppb.Timestamp{
		Seconds: rapid.OneOf(rapid.Int64(), rapid.Int64Range(testNow.Unix()-100000, testNow.Unix()+700000)).Draw(t, label),
		Nanos:   rapid.Int32().Draw(t, label+" nanos"),
	}
}

// careless is an adapter that passes on whatever numbers it finds, wherever it finds them.
func careless(raw []byte) []*providerv1.Window {
	var document any
	if json.Unmarshal(raw, &document) != nil {
		return nil
	}
	var windows []*providerv1.Window
	var walk func(name string, v any, depth int)
	walk = func(name string, v any, depth int) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(name, one, depth+1)
			}
		case map[string]any:
			if w := carelessWindow(name, v); w != nil {
				windows = append(windows, w)
			}
			for key, one := range v {
				walk(key, one, depth+1)
			}
		}
	}
	walk("root", document, 0)
	return windows
}

func carelessWindow(name string, fields map[string]any) *providerv1.Window {
	w := &providerv1.Window{WindowId: name, Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING,
		State: providerv1.WindowState_WINDOW_STATE_OBSERVED}
	found := false
	for _, key := range []string{"usedPercent", "used_percentage", "used_percent"} {
		switch v := fields[key].(type) {
		case float64:
			w.UsedPercent, found = &v, true
		case string:
			special := map[string]float64{"NaN": math.NaN(), "+Inf": math.Inf(1), "42": 42}
			if number, ok := special[v]; ok {
				w.UsedPercent, found = &number, true
			}
		case nil:
			if _, present := fields[key]; present {
				found = true
			}
		}
	}
	for _, key := range []string{"windowDurationMins", "minutes"} {
		if v, ok := fields[key].(float64); ok {
			w.LengthSeconds = int64(v) * 60
		}
	}
	for _, key := range []string{"resetsAt", "resets_at"} {
		switch v := fields[key].(type) {
		case float64:
			w.ResetsAt = &timestamppb.Timestamp{Seconds: int64(v)}
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				w.ResetsAt = timestamppb.New(at)
			}
		}
	}
	if !found {
		return nil
	}
	return w
}

// eachHostileFile tests with what is in each file of hostile telemetry.
func eachHostileFile(t *testing.T, test func(t *testing.T, raw []byte)) {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/telemetry/*")
	must(t, err)
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)
			test(t, raw)
		})
	}
}

func TestHostileTelemetryThroughACarelessAdapterInventsNothing(t *testing.T) {
	eachHostileFile(t, func(t *testing.T, raw []byte) {
		for line := range bytes.Lines(raw) {
			readings := testCheck.readings(careless(line), quota.SourceOfficialClient, testNow)
			sane(t, readings)
			for _, r := range readings {
				if r.State == quota.Exhausted {
					t.Errorf("%s is exhausted", r.ID)
				}
			}
		}
	})
}

func TestHostileTelemetryOfAPlugin(t *testing.T) {
	cases := []struct {
		file  string
		count int
		state quota.ReportedState
		reset bool
	}{
		{"t30-plugin-nan.json", 1, quota.Unknown, true},
		{"t30-plugin-inf.json", 1, quota.Unknown, true},
		{"t30-plugin-reset-before-now.json", 1, quota.Observed, false},
		{"t33-plugin-error-class.json", 1, quota.Observed, true},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/hostile/telemetry/" + c.file)
			must(t, err)
			got := testCheck.readings(careless(raw), quota.SourceOfficialClient, testNow)
			if len(got) != c.count || got[0].State != c.state || got[0].ResetsAt.IsZero() == c.reset {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestEveryKindOfWindowHasItsWord(t *testing.T) {
	for number, name := range providerv1.WindowKind_name {
		kind := providerv1.WindowKind(number)
		account := &providerv1.AccountProfile{Windows: []*providerv1.WindowDeclaration{{WindowId: "w", Kind: kind, LengthSeconds: 60, Models: []string{"m"}, Label: "l"}}}
		var want quota.Kind
		if kind != providerv1.WindowKind_WINDOW_KIND_UNSPECIFIED {
			want = quota.Kind(strings.ToLower(strings.TrimPrefix(name, "WINDOW_KIND_")))
		}
		got := Declarations(account)[0]
		if got.Kind != want || got.ID != "w" || got.Length != time.Minute || !slices.Equal(got.Models, []string{"m"}) || got.Label != "l" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
