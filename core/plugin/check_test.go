package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/noria-dev/noria/core/events"
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
	if got := testCheck.readings(many, quota.SourceOfficialClient, testNow); len(got) != maxWindows {
		t.Errorf("%d readings, want %d", len(got), maxWindows)
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
	if len(readings) > maxWindows {
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
			if !isPrintable(text, maxModelBytes) {
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

func TestHostileTelemetryThroughACarelessAdapterInventsNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/telemetry/*")
	must(t, err)
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)
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

func TestVerdict(t *testing.T) {
	const (
		quotaOut = providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED
		authOut  = providerv1.Outcome_OUTCOME_AUTH_FAILED
		unknown  = providerv1.Outcome_OUTCOME_UNKNOWN_ERROR
		throttle = providerv1.Outcome_OUTCOME_THROTTLED
		over     = providerv1.Outcome_OUTCOME_OVERLOADED
		accepted = providerv1.Outcome_OUTCOME_ACCEPTED

		account = providerv1.Scope_SCOPE_ACCOUNT
		model   = providerv1.Scope_SCOPE_MODEL
		request = providerv1.Scope_SCOPE_REQUEST
		all     = providerv1.Scope_SCOPE_PROVIDER
	)
	event := &providerv1.ClassifyRequest{Model: "opus", Evidence: &providerv1.ClassifyRequest_Event{Event: &providerv1.Event{}}}
	status := &providerv1.ClassifyRequest{Model: "opus", Status: 429}
	nameless := &providerv1.ClassifyRequest{Status: 429}
	cases := []struct {
		name    string
		asked   *providerv1.ClassifyRequest
		answer  *providerv1.ClassifyResponse
		outcome providerv1.Outcome
		scope   providerv1.Scope
		cause   quota.Cause
		model   string
	}{
		{"quota of an account", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: account}, quotaOut, account, quota.CauseQuota, ""},
		{"quota of the request's model", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model}, quotaOut, model, quota.CauseQuota, "opus"},
		{"quota of a named model", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model, Model: "haiku"}, quotaOut, model, quota.CauseQuota, "haiku"},
		{"a model that nobody named blocks nothing", nameless, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: model}, unknown, request, "", ""},
		{"quota of a provider contradicts itself", status, &providerv1.ClassifyResponse{Outcome: quotaOut, Scope: all}, unknown, request, "", ""},
		{"quota without a scope is not guessed", status, &providerv1.ClassifyResponse{Outcome: quotaOut}, unknown, request, "", ""},
		{"sign-in has one scope", status, &providerv1.ClassifyResponse{Outcome: authOut}, authOut, account, quota.CauseAuth, ""},
		{"sign-in of a request contradicts itself", status, &providerv1.ClassifyResponse{Outcome: authOut, Scope: request}, unknown, request, "", ""},
		{"throttled account", status, &providerv1.ClassifyResponse{Outcome: throttle, Scope: account}, throttle, account, quota.CauseThrottle, ""},
		{"throttled request is no rejection", status, &providerv1.ClassifyResponse{Outcome: throttle, Scope: request}, throttle, request, "", ""},
		{"overloaded says nothing about an account", status, &providerv1.ClassifyResponse{Outcome: over, Scope: account}, over, all, "", ""},
		{"unspecified is a bug", status, &providerv1.ClassifyResponse{}, unknown, request, "", ""},
		{"an outcome of tomorrow", status, &providerv1.ClassifyResponse{Outcome: 77, Scope: account}, unknown, request, "", ""},
		{"nothing at all", status, nil, unknown, request, "", ""},
		{"an event can be acceptance", event, &providerv1.ClassifyResponse{Outcome: accepted}, accepted, request, "", ""},
		{"a failed response is none", status, &providerv1.ClassifyResponse{Outcome: accepted}, unknown, request, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := testCheck.verdict(c.answer, c.asked, testNow, testNow)
			if v.Outcome != c.outcome || v.Scope != c.scope || v.Rejection.Cause != c.cause || v.Rejection.Model != c.model {
				t.Errorf("got %v %v cause %q model %q", v.Outcome, v.Scope, v.Rejection.Cause, v.Rejection.Model)
			}
		})
	}
}

func TestVerdictDetailsAreBounded(t *testing.T) {
	answer := &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_THROTTLED, Scope: providerv1.Scope_SCOPE_ACCOUNT,
		Reason: "Text from outside!", RetryAfterMs: math.MaxInt64, WindowId: "x\x1b", ClearsAt: &timestamppb.Timestamp{Seconds: 1796014800000}}
	v := testCheck.verdict(answer, &providerv1.ClassifyRequest{}, testNow, testNow)
	if v.Reason != "unspecified" || v.Rejection.RetryAfter != maxRetryAfter || v.Rejection.WindowID != "" || !v.Rejection.ClearsAt.IsZero() {
		t.Errorf("got %+v", v)
	}
	answer.RetryAfterMs, answer.Reason = -5, "rate_limited"
	answer.ClearsAt = timestamppb.New(testNow.Add(-time.Second))
	v = testCheck.verdict(answer, &providerv1.ClassifyRequest{}, testNow, testNow)
	if v.Reason != "rate_limited" || v.Rejection.RetryAfter != 0 || !v.Rejection.ClearsAt.IsZero() {
		t.Errorf("got %+v", v)
	}
}

func lease(change func(*providerv1.Lease)) *providerv1.LeaseResponse {
	l := &providerv1.Lease{BaseUrl: "https://api.example/v1", Set: []*providerv1.Header{{Name: "authorization", Value: "Bearer x"}},
		ValidUntil: timestamppb.New(testNow.Add(time.Minute)), Generation: "g1"}
	change(l)
	return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Lease{Lease: l}}
}

func TestLeaseIsChecked(t *testing.T) {
	url := func(u string) func(*providerv1.Lease) { return func(l *providerv1.Lease) { l.BaseUrl = u } }
	set := func(name, value string) func(*providerv1.Lease) {
		return func(l *providerv1.Lease) { l.Set = []*providerv1.Header{{Name: name, Value: value}} }
	}
	cases := []struct {
		name   string
		change func(*providerv1.Lease)
		ok     bool
	}{
		{"https", func(*providerv1.Lease) {}, true},
		{"http on loopback", url("http://127.0.0.1:9000/x"), true},
		{"http on loopback by name", url("http://localhost:9000"), true},
		{"http on loopback, version 6", url("http://[::1]:9000"), true},
		{"http elsewhere", url("http://api.example"), false},
		{"http on a name that looks like loopback", url("http://127.0.0.1.example"), false},
		{"user in the URL", url("https://user@api.example"), false},
		{"query in the URL", url("https://api.example?x=1"), false},
		{"fragment in the URL", url("https://api.example#x"), false},
		{"another scheme", url("file:///etc/passwd"), false},
		{"no host", url("https:///x"), false},
		{"line break in the URL", url("https://api.example/\r\nx"), false},
		{"empty URL", url(""), false},
		{"line break in a value", set("authorization", "x\r\ny: z"), false},
		{"colon in a name", set("a:b", "x"), false},
		{"host header", set("Host", "x"), false},
		{"framing header", set("Transfer-Encoding", "chunked"), false},
		{"value of a megabyte", set("x", strings.Repeat("x", 1<<20)), false},
		{"removes framing", func(l *providerv1.Lease) { l.Remove = []string{"content-length"} }, false},
		{"extends a list", func(l *providerv1.Lease) { l.Extend = []*providerv1.Header{{Name: "anthropic-beta", Value: "x"}} }, true},
		{"over already", func(l *providerv1.Lease) { l.ValidUntil = timestamppb.New(testNow) }, false},
		{"escape in the generation", func(l *providerv1.Lease) { l.Generation = "\x1b" }, false},
		{"too many headers", func(l *providerv1.Lease) { l.Remove = make([]string, maxLeaseParts+1) }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := testCheck.lease(lease(c.change), testNow)
			if (err == nil) != c.ok {
				t.Fatalf("got %v", err)
			}
			if err != nil && (!errors.Is(err, ErrBadAnswer) || strings.Contains(err.Error(), "Bearer")) {
				t.Errorf("got %v", err)
			}
			if err == nil && (got.ValidUntil.After(testNow.Add(leaseCap)) || !got.ValidUntil.After(testNow)) {
				t.Errorf("valid until %v", got.ValidUntil)
			}
		})
	}
}

func TestLeaseIsValidForFiveMinutesAtMost(t *testing.T) {
	for name, until := range map[string]*timestamppb.Timestamp{
		"none given": nil, "a year": timestamppb.New(testNow.AddDate(1, 0, 0)), "year 57883": {Seconds: 1764480000000},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testCheck.lease(lease(func(l *providerv1.Lease) { l.ValidUntil = until }), testNow)
			must(t, err)
			if !got.ValidUntil.Equal(testNow.Add(leaseCap)) {
				t.Errorf("valid until %v", got.ValidUntil)
			}
		})
	}
}

func TestRefusalOfALeaseIsTyped(t *testing.T) {
	refusal := func(code providerv1.RefusalCode, reason string) *providerv1.LeaseResponse {
		return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Refusal{Refusal: &providerv1.Refusal{Code: code, Reason: reason}}}
	}
	cases := []struct {
		name   string
		answer *providerv1.LeaseResponse
		code   providerv1.RefusalCode
		reason string
	}{
		{"signed out", refusal(providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "run noria connect"), providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "run noria connect"},
		{"a code of tomorrow holds nothing against the account", refusal(42, "x"), providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, "x"},
		{"no code", refusal(0, ""), providerv1.RefusalCode_REFUSAL_CODE_TEMPORARY, "the adapter gave no reason"},
		{"escapes and credentials", refusal(1, "a\x1b[2J "+canary), providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, "a?[2J [redacted]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := testCheck.lease(c.answer, testNow)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Code != c.code || refused.Reason != c.reason {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := testCheck.lease(&providerv1.LeaseResponse{}, testNow); !errors.Is(err, ErrBadAnswer) {
		t.Errorf("neither lease nor refusal: %v", err)
	}
}

func TestCommandForTheTerminalIsChecked(t *testing.T) {
	cases := []struct {
		name  string
		given *providerv1.OfficialCommand
		ok    bool
	}{
		{"plain", &providerv1.OfficialCommand{Argv: []string{"claude", "{{args}}"}, Environment: map[string]string{"A": "{{base_url}}"}, Unset: []string{"B"}}, true},
		{"none", nil, false},
		{"empty program", &providerv1.OfficialCommand{Argv: []string{""}}, false},
		{"NUL", &providerv1.OfficialCommand{Argv: []string{"a\x00b"}}, false},
		{"bad variable", &providerv1.OfficialCommand{Argv: []string{"a"}, Environment: map[string]string{"A=B": "x"}}, false},
		{"bad name to unset", &providerv1.OfficialCommand{Argv: []string{"a"}, Unset: []string{"A B"}}, false},
		{"too many arguments", &providerv1.OfficialCommand{Argv: make([]string, maxArgv+1)}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := testCheck.command(c.given); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestModelsAreBounded(t *testing.T) {
	given := &providerv1.ListModelsResponse{ClientVersion: "1.0\x1b", Source: "model/list"}
	for range maxCatalog + 10 {
		given.Models = append(given.Models, &providerv1.Model{Id: "m", Efforts: make([]string, 100)})
	}
	given.Models[0].Id, given.Models[1].Id = "", "x\x1b"
	got := testCheck.models(given, testNow)
	if len(got.Models) != maxCatalog-2 || len(got.Models[0].Efforts) != maxEfforts || got.ClientVersion != "1.0?" || !got.ReadAt.Equal(testNow) {
		t.Errorf("%d models, %d efforts, client %q", len(got.Models), len(got.Models[0].Efforts), got.ClientVersion)
	}
}
