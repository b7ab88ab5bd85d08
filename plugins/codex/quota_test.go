package codex

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// readQuota asks a client that replies by a file of testdata.
func readQuota(t *testing.T, replies string, at time.Time) (sdk.QuotaReading, error) {
	t.Helper()
	client, _ := fakeClient(t, replies, "")
	a := New()
	a.now = func() time.Time { return at }
	return a.ReadQuota(t.Context(), homeAccount(t, client, homeWith(t, loginFile(token(at.Add(time.Hour), "a")))))
}

func TestLimitsAreThoseThatTheOfficialClientTells(t *testing.T) {
	const base = 1796000000
	cases := []struct {
		replies string
		at      int64
		want    map[string]seen
	}{
		{"u01_normal", 1796004582, map[string]seen{"5h": {12, 1796008182, sdk.StateObserved}, "weekly": {34, 1796404582, sdk.StateObserved}}},
		{"u02_null_secondary", 1796004582, map[string]seen{"5h": {12, 1796008183, sdk.StateObserved}}},
		{"u03_no_windows", base, map[string]seen{}},
		{"u04_additional", 1796004589, map[string]seen{
			"5h": {12, 1796008189, sdk.StateObserved}, "weekly": {34, 1796404589, sdk.StateObserved},
			"codex_fox:5h": {100, 1796005489, sdk.StateObserved}, "codex_fox:weekly": {55, 1796094589, sdk.StateObserved},
			"codex_owl:1h": {1, 1796004689, sdk.StateObserved},
		}},
		{"u05_individual", 1796004590, map[string]seen{"individual": {37, 1796177390, sdk.StateObserved}}},
		{"u07_exhausted_5h", 1796004595, map[string]seen{"5h": {100, 1796008195, sdk.StateExhausted}, "weekly": {34, 1796404595, sdk.StateObserved}}},
		{"u12_odd_windows", 1796004604, map[string]seen{"1h": {5, 1796004704, sdk.StateObserved}, "1d": {6, 1796006604, sdk.StateObserved}}},
		{"u12b_weekly_in_primary", 1796004605, map[string]seen{"weekly": {5, 1796104605, sdk.StateObserved}}},
		{"u12d_zero_duration", base, map[string]seen{}},
		{"u13b_over_100", 1796004609, map[string]seen{"5h": {-1, 1796004709, sdk.StateUnknown}}},
		{"v06_check404", 1796004761, map[string]seen{"5h": {12, 1796008361, sdk.StateObserved}, "weekly": {34, 1796404761, sdk.StateObserved}}},
	}
	for _, c := range cases {
		t.Run(c.replies, func(t *testing.T) {
			reading, err := readQuota(t, c.replies, adaptertest.Unix(c.at))
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(reading.Windows); !maps.Equal(got, c.want) {
				t.Errorf("windows = %v, want %v", got, c.want)
			}
			for _, w := range reading.Windows {
				if w.Source != sdk.SourceOfficialClient || !w.ObservedAt.Equal(adaptertest.Unix(c.at)) {
					t.Errorf("%s: source %v, observed at %v", w.ID, w.Source, w.ObservedAt)
				}
			}
		})
	}
}

func TestAReadThatFailsTellsItsClassAndNoText(t *testing.T) {
	for replies, class := range map[string]string{
		"u08_401": "upstream status 401", "u09_500": "upstream status 500", "u10_badjson": "error -32603",
		"u13_float_percent": "error -32603", "v01_notloggedin": "error -32600", "v02_apikey": "error -32600", "v05_refused": "error -32603",
	} {
		t.Run(replies, func(t *testing.T) {
			reading, err := readQuota(t, replies, now)
			if err == nil || !strings.Contains(err.Error(), class) || reading.Windows != nil {
				t.Fatalf("ReadQuota = %+v, %v; want an error with %q", reading, err, class)
			}
			for _, outside := range []string{"{", "127.0.0.1", "body", "routing", "authentication", "CANARY"} {
				if strings.Contains(err.Error(), outside) {
					t.Errorf("error %q holds text from outside", err)
				}
			}
		})
	}
}

func TestFiguresOfTheOfficialClientAreReadStrictly(t *testing.T) {
	week := seen{13, 1796500000, sdk.StateObserved}
	unread := map[string]seen{"5h": {-1, 1796014800, sdk.StateUnknown}, "weekly": week}
	noReset := map[string]seen{"5h": {42.5, 0, sdk.StateObserved}, "weekly": week}
	good := map[string]seen{"5h": {42.5, 1796014800, sdk.StateObserved}, "weekly": week}
	want := map[string]map[string]seen{
		"t00-codex-good": good, "t01-codex-swapped": good,
		"t03-codex-over": unread, "t03-codex-str": unread, "t03-codex-bool": unread,
		"t03-codex-neg":     {"5h": {0, 1796014800, sdk.StateObserved}, "weekly": week},
		"t03-codex-durhuge": {"weekly": week},
		"t03-codex-ms":      noReset, "t03-codex-iso": noReset, "t03-codex-past": noReset, "t03-codex-far": noReset, "t03-codex-zero": noReset,
		"t04-codex-wrong-id": good,
	}
	for _, path := range adaptertest.Glob(t, "testdata/telemetry/*.json") {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		expected, listed := want[name]
		if !listed {
			t.Errorf("%s is not in the table", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			var reply struct{ Result rateLimits }
			adaptertest.ReadJSON(t, path, &reply)
			if got := summary(reply.Result.windows(adaptertest.Unix(1796000000))); !maps.Equal(got, expected) {
				t.Errorf("windows = %v, want %v", got, expected)
			}
		})
	}
}

func TestSpendControlThatWasReachedExhaustsTheIndividualLimit(t *testing.T) {
	limits := rateLimits{RateLimits: &bucket{SpendControlReached: true, IndividualLimit: &individual{RemainingPercent: json.RawMessage("0")}}}
	want := map[string]seen{"individual": {100, 0, sdk.StateExhausted}}
	if got := summary(limits.windows(adaptertest.Unix(1796000000))); !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
}

func TestAWindowAwaitsFirstUseWhenItsResetSlides(t *testing.T) {
	const length = 5 * time.Hour
	type reading struct {
		after time.Duration
		used  float64
		reset time.Duration // from the first reading
	}
	cases := []struct {
		name     string
		readings []reading
		want     sdk.WindowState // of the last reading
	}{
		{"one reading proves nothing", []reading{{0, 0, length}}, sdk.StateObserved},
		{"unused and sliding", []reading{{0, 0, length}, {time.Minute, 0, length + time.Minute}}, sdk.StateAwaitingFirstUse},
		{"a percent of rounding", []reading{{0, 1, length}, {time.Minute, 1, length + time.Minute}}, sdk.StateAwaitingFirstUse},
		{"unused and standing", []reading{{0, 0, length}, {time.Minute, 0, length}}, sdk.StateObserved},
		{"used and sliding", []reading{{0, 2, length}, {time.Minute, 2, length + time.Minute}}, sdk.StateObserved},
		{"begun between the readings", []reading{{0, 0, length}, {10 * time.Minute, 0, length + 2*time.Minute}}, sdk.StateObserved},
		{"begun an hour ago", []reading{{0, 0, length - time.Hour}, {time.Minute, 0, length - time.Hour + time.Minute}}, sdk.StateObserved},
		{"begun after it slid", []reading{{0, 0, length}, {time.Minute, 0, length + time.Minute}, {2 * time.Minute, 0, length + time.Minute}}, sdk.StateObserved},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := New()
			var last sdk.Window
			for _, r := range c.readings {
				last = a.remember("main", []sdk.Window{{ID: "5h", Length: length, UsedPercent: &r.used, State: sdk.StateObserved,
					ObservedAt: now.Add(r.after), ResetsAt: now.Add(r.reset)}})[0]
			}
			if last.State != c.want || last.ResetsAt.IsZero() != (c.want == sdk.StateAwaitingFirstUse) {
				t.Errorf("window = %v, reset %v; want %v", last.State, last.ResetsAt, c.want)
			}
		})
	}
}

func TestWindowsAreDeclaredOnceTheyWereRead(t *testing.T) {
	client, _ := fakeClient(t, "u01_normal", "")
	a := at(adaptertest.Unix(1796004582))
	account := homeAccount(t, client, homeWith(t, loginFile("opaque")))
	ids := func() (ids []string) {
		windows, unmetered := a.Windows(account)
		if unmetered {
			t.Error("a plan is unmetered")
		}
		for _, w := range windows {
			ids = append(ids, w.ID)
		}
		return ids
	}
	if before := ids(); !slices.Equal(before, []string{"weekly"}) {
		t.Errorf("windows before a reading = %v", before)
	}
	if _, err := a.ReadQuota(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if after := ids(); !slices.Equal(after, []string{"5h", "weekly"}) {
		t.Errorf("windows after a reading = %v", after)
	}
}

func TestAKeyHasNoLimitsToRead(t *testing.T) {
	account := adaptertest.NewAccount(t, map[string]any{"client": "/none"}, map[string]any{"api_key": true}, sdk.Credential{Value: "sk-x"})
	reading, err := New().ReadQuota(t.Context(), account)
	if err != nil || reading.Windows != nil {
		t.Errorf("ReadQuota = %+v, %v", reading, err)
	}
	if windows, unmetered := New().Windows(account); !unmetered || windows != nil {
		t.Errorf("windows of a key = %v, %v", windows, unmetered)
	}
}

func TestAConfiguredCredentialHasNoClientToAskForItsLimits(t *testing.T) {
	account := adaptertest.NewAccount(t, map[string]any{"client": "/none"}, nil, sdk.Credential{Value: "x"})
	if reading, err := New().ReadQuota(t.Context(), account); err != nil || reading.Windows != nil {
		t.Errorf("ReadQuota = %+v, %v", reading, err)
	}
}

func TestAReadThatHangsEndsWithItsCallerAndTheClientGoesOn(t *testing.T) {
	dir := t.TempDir()
	client, pipe := filepath.Join(dir, "codex"), filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// It takes the first call and leaves when the pipe is written to.
	script := "#!/bin/sh\nread -r line\ncat '" + pipe + "' >/dev/null\n"
	if err := os.WriteFile(client, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a := New()
	account := homeAccount(t, client, homeWith(t, ""))
	if _, err := a.ReadQuota(ctx, account); err == nil {
		t.Error("a read without an answer succeeded")
	}
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestModelsAreThoseThatTheOfficialClientLists(t *testing.T) {
	client, log := fakeClient(t, "c00", "")
	catalog, err := at(now).ListModels(t.Context(), homeAccount(t, client, homeWith(t, loginFile("opaque"))))
	if err != nil {
		t.Fatal(err)
	}
	if catalog.ClientVersion != "0.171.0" || catalog.Source != "model/list" || !catalog.ReadAt.Equal(now) || len(catalog.Models) != 2 {
		t.Fatalf("catalog = %+v", catalog)
	}
	m := catalog.Models[0]
	if m.ID != "gpt-6.2-sol" || m.DisplayName != "GPT-6.2-Sol" || m.DefaultEffort != "low" || !m.Default || m.Hidden || len(m.Efforts) != 6 {
		t.Errorf("model = %+v", m)
	}
	if asked := calls(t, log, "model/list"); len(asked) != 1 || asked[0] != `model/list {"includeHidden":true}` {
		t.Errorf("the official client was asked %q", asked)
	}
}

func TestPagesOfModelsAreBounded(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "replies.json")
	page := `{"result":{"data":[{"id":"m"}],"nextCursor":"more"}}`
	if err := os.WriteFile(recorded, []byte(`{"initialize":[{"result":{"userAgent":"CANARY"}}],"model/list":[`+page+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(dir, "codex")
	log := writeClient(t, client, filepath.Join(dir, "log"), recorded, "")
	catalog, err := New().ListModels(t.Context(), homeAccount(t, client, homeWith(t, "")))
	if err != nil || len(catalog.Models) != maxPages || catalog.ClientVersion != "" {
		t.Errorf("catalog = %+v, %v", catalog, err)
	}
	if asked := calls(t, log, "model/list"); len(asked) != maxPages || !strings.Contains(asked[1], `"cursor":"more"`) {
		t.Errorf("the official client was asked %q", asked)
	}
}
