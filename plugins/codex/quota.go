package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// ReadQuota asks the official client for the account's limits. It spends nothing: details of credits that could be spent
// to reset a limit are left out.
func (a *Adapter) ReadQuota(ctx context.Context, account sdk.Account) (sdk.QuotaReading, error) {
	s, err := settingsOf(account)
	if err != nil {
		return sdk.QuotaReading{}, err
	}
	switch {
	case s.account.APIKey:
		return sdk.QuotaReading{Auth: sdk.AuthSignedIn}, nil
	case s.account.Home == "":
		// There is no client to ask: answers alone tell of the limits of a configured credential.
		return sdk.QuotaReading{}, nil
	}
	reading, err := ask(ctx, a, s, func(server *appServer) (sdk.QuotaReading, error) {
		return a.readLimits(server, account, s)
	})
	if err != nil {
		return sdk.QuotaReading{}, fmt.Errorf("read limits: %w", withClass(err))
	}
	reading.Windows = a.remember(account.Name, reading.Windows)
	return reading, nil
}

func (a *Adapter) readLimits(server *appServer, account sdk.Account, s settings) (sdk.QuotaReading, error) {
	var reading sdk.QuotaReading
	// The limits can be read where the account cannot, and the other way round.
	if info, err := server.account(false); err == nil {
		reading.Auth = statusOf(info, account, s).State
	}
	observedAt := a.now()
	var limits rateLimits
	if err := server.rpc.Call("account/rateLimits/read", map[string]bool{"excludeResetCreditDetails": true}, &limits); err != nil {
		return sdk.QuotaReading{}, err
	}
	reading.Windows = limits.windows(observedAt)
	return reading, nil
}

// rateLimits is the result of account/rateLimits/read.
type rateLimits struct {
	OrdinaryUsageAllowed *bool              `json:"ordinaryUsageAllowed"`
	RateLimits           *bucket            `json:"rateLimits"`
	ByLimitID            map[string]*bucket `json:"rateLimitsByLimitId"`
}

// bucket is one limit, that of the account or a named one.
type bucket struct {
	LimitID             string          `json:"limitId"`
	LimitName           string          `json:"limitName"`
	Primary             *bucketSlot     `json:"primary"`
	Secondary           *bucketSlot     `json:"secondary"`
	IndividualLimit     *individual     `json:"individualLimit"`
	SpendControlReached bool            `json:"spendControlReached"`
	ReachedType         json.RawMessage `json:"rateLimitReachedType"`
}

type bucketSlot struct {
	UsedPercent    json.RawMessage `json:"usedPercent"`
	WindowDuration json.RawMessage `json:"windowDurationMins"`
	ResetsAt       json.RawMessage `json:"resetsAt"`
}

// individual is a person's share of a workspace's spending. Its cadence is not told and never inferred.
type individual struct {
	RemainingPercent json.RawMessage `json:"remainingPercent"`
	ResetsAt         json.RawMessage `json:"resetsAt"`
}

// maxWindows bounds the windows of one reading; the account's own come first.
const maxWindows = 16

func (r rateLimits) windows(observedAt time.Time) []sdk.Window {
	buckets := r.ByLimitID
	if len(buckets) == 0 && r.RateLimits != nil {
		buckets = map[string]*bucket{r.RateLimits.LimitID: r.RateLimits}
	}
	var own, named []sdk.Window
	for _, id := range slices.Sorted(maps.Keys(buckets)) {
		b := buckets[id]
		if b == nil {
			continue
		}
		l := newLimit(id, b.LimitName)
		windows := b.windows(l, observedAt)
		if b.reached() || (!l.named() && r.OrdinaryUsageAllowed != nil && !*r.OrdinaryUsageAllowed) {
			exhaust(windows)
		}
		if l.named() {
			named = append(named, windows...)
		} else {
			own = append(own, windows...)
		}
	}
	all := append(own, named...)
	return all[:min(len(all), maxWindows)]
}

func (b *bucket) reached() bool {
	return given(b.ReachedType)
}

func (b *bucket) windows(l limit, observedAt time.Time) []sdk.Window {
	var windows []sdk.Window
	for _, slot := range []*bucketSlot{b.Primary, b.Secondary} {
		if slot == nil {
			continue
		}
		f := figures{
			told: given(slot.UsedPercent), used: percentOf(slot.UsedPercent),
			minutes: wholeOf(slot.WindowDuration), reset: unixOf(slot.ResetsAt),
		}
		if w, ok := f.window(l, observedAt); ok {
			w.Source = sdk.SourceOfficialClient
			windows = append(windows, w)
		}
	}
	if b.IndividualLimit != nil && !l.named() {
		windows = append(windows, b.IndividualLimit.window(b.SpendControlReached, observedAt))
	}
	return windows
}

func (i individual) window(reached bool, observedAt time.Time) sdk.Window {
	w := sdk.Window{
		ID: "individual", Kind: sdk.WindowIndividual, Label: "individual", State: sdk.StateUnknown,
		Source: sdk.SourceOfficialClient, ObservedAt: observedAt,
		ResetsAt: sdk.ResetWithin(unixOf(i.ResetsAt), observedAt, 0),
	}
	if remaining := percentOf(i.RemainingPercent); remaining != nil {
		w.UsedPercent, w.State = sdk.PercentOf(100-*remaining), sdk.StateObserved
	}
	if reached {
		w.State = sdk.StateExhausted
	}
	return w
}

// remember keeps a reading for the next one and marks the windows that have not started. The provider has no flag for
// that: such a window is unused and its reset is always a whole length away, so it slides forward from one reading to the
// next. A reset is then no clock that runs, and is left out.
func (a *Adapter) remember(account string, windows []sdk.Window) []sdk.Window {
	a.mu.Lock()
	before := a.readings[account]
	a.readings[account] = windows
	a.mu.Unlock()
	marked := slices.Clone(windows)
	for i, w := range marked {
		at := slices.IndexFunc(before, func(other sdk.Window) bool { return other.ID == w.ID })
		if at >= 0 && sliding(before[at], w) {
			marked[i].State, marked[i].ResetsAt = sdk.StateAwaitingFirstUse, time.Time{}
		}
	}
	return marked
}

func sliding(before, now sdk.Window) bool {
	if !idle(before) || !idle(now) {
		return false
	}
	slid := now.ResetsAt.Sub(before.ResetsAt)
	return slid > 0 && slid >= now.ObservedAt.Sub(before.ObservedAt)/2
}

// idle: unused, and with its whole length before it.
func idle(w sdk.Window) bool {
	if w.Length <= 0 || w.UsedPercent == nil || *w.UsedPercent > 1 || w.ResetsAt.IsZero() {
		return false
	}
	slack := max(time.Minute, w.Length/100)
	return w.ResetsAt.Sub(w.ObservedAt.Add(w.Length)).Abs() <= slack
}
