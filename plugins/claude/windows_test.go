package claude

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/noria-dev/noria/plugins/internal/adaptertest"
	"github.com/noria-dev/noria/sdk"
)

// seen is what a reading says of a window.
type seen struct {
	used  float64 // -1: unknown
	reset int64   // 0: unknown
	state sdk.WindowState
}

func observe(t *testing.T, header http.Header, observedAt int64) map[string]seen {
	t.Helper()
	windows, err := New().Observe(t.Context(), sdk.Account{}, sdk.Observation{Status: 200, Header: header, ObservedAt: adaptertest.Unix(observedAt)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]seen{}
	for _, w := range windows {
		s := seen{used: -1, state: w.State}
		if w.UsedPercent != nil {
			s.used = *w.UsedPercent
		}
		if !w.ResetsAt.IsZero() {
			s.reset = w.ResetsAt.Unix()
		}
		found[w.ID] = s
		if w.Source != sdk.SourceResponseHeader || !w.ObservedAt.Equal(adaptertest.Unix(observedAt)) {
			t.Errorf("%s: source %v, observed at %v", w.ID, w.Source, w.ObservedAt)
		}
	}
	return found
}

func TestObserveUpstreamAnswers(t *testing.T) {
	want := map[string]map[string]seen{
		"claude-200-rejected-overage":     {windowFiveHour: {-1, 0, sdk.StateExhausted}},
		"claude-200-allowed-warning":      {windowSevenDay: {76, 0, sdk.StateObserved}},
		"claude-200-overage-only-headers": {},
		"claude-200-apikey-classic":       {},
		"claude-429-5h-exhausted": {
			windowFiveHour: {100, 1785518400, sdk.StateExhausted}, windowSevenDay: {69, 1786006800, sdk.StateObserved},
		},
		"claude-429-7d_oi-only": {
			"seven_day_oi": {-1, 1796604800, sdk.StateExhausted},
		},
	}
	exchanges := adaptertest.ReadExchanges(t, "testdata/upstream.json")
	for id, expected := range want {
		t.Run(id, func(t *testing.T) {
			if got := observe(t, exchanges[id].Header(), exchanges[id].ObservedAt); !maps.Equal(got, expected) {
				t.Errorf("windows = %v, want %v", got, expected)
			}
		})
	}
}

func TestObserveTakesStrictFiguresOnly(t *testing.T) {
	good := map[string]seen{windowFiveHour: {42, 1796014800, sdk.StateObserved}, windowSevenDay: {10, 1796500000, sdk.StateObserved}}
	unread := func(reset int64) map[string]seen {
		return map[string]seen{windowFiveHour: {-1, reset, sdk.StateUnknown}, windowSevenDay: good[windowSevenDay]}
	}
	noReset := map[string]seen{windowFiveHour: {42, 0, sdk.StateObserved}, windowSevenDay: good[windowSevenDay]}
	want := map[string]map[string]seen{
		"u00-good": good, "u01-hdr-exp": unread(1796014800), "u01-hdr-neg": unread(1796014800), "u01-hdr-percent": unread(1796014800),
		"u01-hdr-empty": unread(0), "u01-hdr-hex": unread(1796014800), "u01-hdr-underscore": unread(1796014800),
		"u01-hdr-arabic": unread(1796014800), "u01-hdr-iso": noReset, "u01-hdr-float-reset": noReset, "u01-hdr-past": noReset,
	}
	for _, path := range adaptertest.Glob(t, "testdata/hostile/u0[01]*.http") {
		e := adaptertest.ReadAnswer(t, path)
		expected, listed := want[e.ID]
		if !listed {
			t.Errorf("%s is not in the table", e.ID)
			continue
		}
		t.Run(e.ID, func(t *testing.T) {
			if got := observe(t, e.Header(), 1796000000); !maps.Equal(got, expected) {
				t.Errorf("windows = %v, want %v", got, expected)
			}
		})
	}
}

func TestContradictoryHeadersAreUnknownAndTheStricterStatusCounts(t *testing.T) {
	header := adaptertest.ReadAnswer(t, filepath.Join("testdata/hostile", "u00-good.http")).Header()
	header.Add(headerPrefix+"5h-utilization", "0.99")
	header.Add(headerPrefix+"7d-status", "allowed")
	header.Add(headerPrefix+"7d-status", rejected)
	want := map[string]seen{windowFiveHour: {-1, 1796014800, sdk.StateUnknown}, windowSevenDay: {10, 1796500000, sdk.StateExhausted}}
	if got := observe(t, header, 1796000000); !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
}

func TestAHundredPercentThatIsShownExhaustsNothing(t *testing.T) {
	header := http.Header{}
	header.Set(headerPrefix+"5h-status", "allowed_warning")
	header.Set(headerPrefix+"5h-utilization", "1.04")
	want := map[string]seen{windowFiveHour: {100, 0, sdk.StateObserved}}
	if got := observe(t, header, 1796000000); !maps.Equal(got, want) {
		t.Errorf("windows = %v, want %v", got, want)
	}
}

func TestFamiliesAreWindowsOfTheirModels(t *testing.T) {
	header := http.Header{}
	for _, family := range []string{"opus", "oi"} {
		header.Set(headerPrefix+"7d_"+family+"-utilization", "0.5")
	}
	header.Set(headerPrefix+"7d_-utilization", "0.5")
	header.Set(headerPrefix+"7d_$x-utilization", "0.5")
	header.Set(headerPrefix+"9w-utilization", "0.5")
	windows := readLimits(header, adaptertest.Unix(1796000000)).windows(sdk.SourceResponseHeader)
	got := map[string]string{}
	for _, w := range windows {
		if w.Kind != sdk.WindowModel || w.Length != sevenDays || len(w.Models) != 1 {
			t.Errorf("window %+v is no week of a family", w)
			continue
		}
		got[w.ID] = w.Models[0]
	}
	if want := map[string]string{"seven_day_opus": "*opus*", "seven_day_oi": "*fable*"}; !maps.Equal(got, want) {
		t.Errorf("families = %v, want %v", got, want)
	}
}

func TestWindowsAreBoundedAndInOrder(t *testing.T) {
	header := http.Header{}
	header.Set(headerPrefix+"5h-utilization", "0.5")
	header.Set(headerPrefix+"7d-utilization", "0.5")
	for i := range 1000 {
		header.Set(headerPrefix+"7d_f"+strconv.Itoa(i)+"-utilization", "0.5")
	}
	var first []string
	for range 5 {
		var ids []string
		for _, w := range readLimits(header, adaptertest.Unix(1796000000)).windows(sdk.SourceResponseHeader) {
			ids = append(ids, w.ID)
		}
		if len(ids) != maxClocks || ids[0] != windowFiveHour || ids[1] != windowSevenDay {
			t.Fatalf("%d windows, first %v", len(ids), ids[:2])
		}
		if first == nil {
			first = ids
		}
		if !slices.Equal(first, ids) {
			t.Error("two readings of the same headers differ")
		}
	}
}

func TestTheClaimedWindowHasRoomAmongTooMany(t *testing.T) {
	header := http.Header{}
	header.Set(headerPrefix+"status", rejected)
	header.Set(headerPrefix+"representative-claim", "seven_day_zeta")
	for i := range maxClocks + 4 {
		header.Set(fmt.Sprintf("%s7d_m%02d-utilization", headerPrefix, i), "0.5")
	}
	l := readLimits(header, now)
	if len(l.clocks) != maxClocks || l.clocks[maxClocks-1].id != "seven_day_zeta" || !l.clocks[maxClocks-1].rejected {
		t.Errorf("%d clocks, the last %+v", len(l.clocks), l.clocks[len(l.clocks)-1])
	}
}
