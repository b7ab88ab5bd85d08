package simulated

import (
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func testMeter(seed int, block accountBlock) *meter {
	return newMeter("a", providerBlock{Speed: 60, Seed: seed, Cost: 30}, block, noon)
}

func TestWindowsRunFasterThanLife(t *testing.T) {
	windows := providerBlock{Speed: 60}.windows()
	if windows[0].Length != 5*time.Minute || windows[1].Length != 168*time.Minute {
		t.Errorf("lengths are %v and %v, want 5m and 2h48m", windows[0].Length, windows[1].Length)
	}
}

func TestWindowDoesNotRunUntilItIsUsed(t *testing.T) {
	m := testMeter(1, accountBlock{})
	for _, c := range m.read(noon) {
		if w := c.window(noon); w.State != sdk.StateAwaitingFirstUse || !w.ResetsAt.IsZero() || *w.UsedPercent != 0 {
			t.Errorf("%s is %v at %v, resets %v; want awaiting first use", w.ID, w.State, *w.UsedPercent, w.ResetsAt)
		}
	}
	later := noon.Add(time.Hour)
	ruled := m.rule(later)
	if got := ruled.clocks[0]; got.used <= 0 || !got.resetsAt.Equal(later.Add(5*time.Minute)) {
		t.Errorf("after first use it is at %v, resets %v; want its length from then", got.used, got.resetsAt)
	}
}

func TestFullWindowRejectsUntilItResets(t *testing.T) {
	m := testMeter(1, accountBlock{FiveHourUsed: 100, FiveHourLeft: time.Minute})
	first, second := m.rule(noon), m.rule(noon)
	if first.rejectedBy != windowFiveHour || !first.inStream {
		t.Errorf("first rejection by %q, in stream %v; want by 5h in the stream", first.rejectedBy, first.inStream)
	}
	if second.rejectedBy != windowFiveHour || second.inStream {
		t.Errorf("second rejection by %q, in stream %v; want by 5h by status", second.rejectedBy, second.inStream)
	}
	if w := first.clocks[0].window(noon); w.State != sdk.StateExhausted {
		t.Errorf("full window is %v", w.State)
	}
	if ruled := m.rule(noon.Add(time.Minute)); ruled.rejectedBy != "" || ruled.clocks[0].used >= 100 {
		t.Errorf("after the reset rejected by %q at %v", ruled.rejectedBy, ruled.clocks[0].used)
	}
}

func TestAccountIsFoundToBeUsedUpByARejection(t *testing.T) {
	m := testMeter(1, accountBlock{FiveHourUsed: 10})
	for range 10 {
		before := m.read(noon)[0]
		ruled := m.rule(noon)
		if before.full() || ruled.rejectedBy == "" && ruled.clocks[0].full() {
			t.Fatalf("the window is full at %v before anything was rejected", before.used)
		}
		if ruled.rejectedBy != "" {
			if !ruled.clocks[0].full() {
				t.Errorf("rejected at %v", ruled.clocks[0].used)
			}
			return
		}
	}
	t.Error("ten requests of a third of the window each were accepted")
}

func TestFreeFiveHoursDoNotOverrideAFullWeek(t *testing.T) {
	m := testMeter(1, accountBlock{WeeklyUsed: 100})
	if ruled := m.rule(noon); ruled.rejectedBy != windowWeekly {
		t.Errorf("rejected by %q, want weekly", ruled.rejectedBy)
	}
}

func TestSameSeedSpendsTheSame(t *testing.T) {
	spent := func(seed int) (used []float64) {
		m := testMeter(seed, accountBlock{})
		for range 3 {
			used = append(used, m.rule(noon).clocks[0].used)
		}
		return used
	}
	one, again, other := spent(1), spent(1), spent(2)
	for i := range one {
		if one[i] != again[i] {
			t.Errorf("request %d: %v and %v with one seed", i, one[i], again[i])
		}
	}
	if one[0] == other[0] {
		t.Errorf("another seed spends the same %v", one[0])
	}
}
