package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/noria-dev/noria/core/journal"
	"github.com/noria-dev/noria/core/quota"
)

// TestEveryEntryFitsTheJournal fills rows up to their bounds, by way of the store, with texts that encode longest.
func TestEveryEntryFitsTheJournal(t *testing.T) {
	quotes := func(n, i int) string { return strings.Repeat(`"`, n-4) + fmt.Sprintf("%04d", i) }
	var patterns []string
	for i := range maxPatterns {
		patterns = append(patterns, quotes(maxName, i))
	}
	c := AccountConfig{ID: quota.AccountID{Provider: quotes(maxName, 0), Name: quotes(maxName, 0)}, Enabled: true}
	for i := range 16 {
		c.Windows = append(c.Windows, quota.Declaration{ID: quotes(maxName, i), Length: fiveHours, Models: patterns, Label: quotes(maxName, i)})
	}
	f := open(t)
	f.must(f.ApplyAccounts([]AccountConfig{c}, f.now))
	a := f.accounts[c.ID]
	for i := range 16 {
		model := boundedModel(quotes(maxName, i))
		for w := range a.Windows {
			a.Windows[w].Learned = append(a.Windows[w].Learned, quota.Consumption{Model: model, Percent: 1.0 / 3e5, Requests: 1e5 / 3.0})
		}
		a.Begin(model)
		a.Complete(model, f.now)
	}
	for _, d := range c.Windows {
		f.must(f.Observe(c.ID, []quota.Reading{{Declaration: d, UsedPercent: 100.0 / 3, HasUsed: true, State: quota.Observed, ResetsAt: f.now.Add(1e9 + 1)}}, f.now, f.now))
	}
	for i := range 100 {
		a.Reject(quota.Rejection{Cause: quota.CauseNotEntitled, Model: quotes(maxName, i), Reason: strings.Repeat("x", maxCode)}, "m", f.now, f.now)
	}
	entries := append(clocksOf(a.Account), &blockersRow{Account: a.ID, Blockers: a.Blockers})
	binding := &bindingRow{
		Session: a.ID.Provider + "/" + quotes(maxIdentity, 0), Model: quotes(maxName, 0), Account: a.ID.Name,
		BoundBy: BoundByOperator, Cause: quotes(maxCode, 0), BoundAt: f.now, LastUsed: f.now,
	}
	for range 2 * maxMoves {
		binding.Moves = binding.moved(binding)
	}
	entries = append(entries, binding)
	for _, e := range entries {
		data, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > journal.MaxEntryBytes {
			t.Errorf("a %s entry has %d bytes, the journal takes %d", e.entryType(), len(data), journal.MaxEntryBytes)
		}
		if _, err := decode(data, make(words)); err != nil {
			t.Errorf("%s: %v", e.entryType(), err)
		}
	}
}

func TestWindowsInSeveralEntriesComeBackWhole(t *testing.T) {
	f := open(t, "a")
	for i := range 10 {
		f.configs[0].Windows = append(f.configs[0].Windows, quota.Declaration{ID: fmt.Sprint("w", i), Kind: quota.KindModel, Length: week, Models: []string{"x"}})
	}
	f.must(f.ApplyAccounts(f.configs, f.now))
	f.read("a", 33, 44)
	f.must(f.Close())
	f.recover()
	a := f.accounts[id("a")]
	if len(a.Windows) != 12 || a.Window("5h").EstimatePercent != 33 {
		t.Errorf("%d windows, 5h at %v", len(a.Windows), a.Window("5h").EstimatePercent)
	}
	f.configs[0].Windows = f.configs[0].Windows[:2]
	f.must(f.ApplyAccounts(f.configs, f.now))
	f.read("a", 34, 44)
	f.must(f.Close())
	f.recover()
	if n, err := count(f.db.Txn(false), tableWindows); err != nil || n != 2 {
		t.Errorf("%d windows in the store: %v", n, err)
	}
}

func TestWhatIsWrongIsSaidInOneLine(t *testing.T) {
	wrong := &bindingRow{
		Session: "claude/\n", Model: "\n", Account: "\n", BoundBy: BoundInitially, BoundAt: start.AddDate(9000, 0, 0), Cadence: 1e300,
	}
	if err := wrong.check(); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error = %v", err)
	}
}
