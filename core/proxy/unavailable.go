package proxy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// shapeTime that the adapter has for shaping an answer of ours; else the profile's templates do.
const shapeTime = 2 * time.Second

// reply is an answer of our own before it has the client's shape.
type reply struct {
	sentence string
	causes   map[providerv1.Cause]int
	forecast placement.Forecast
}

// passing reports whether an account is out for trouble that may be over at any moment.
func passing(causes map[providerv1.Cause]int) bool {
	return causes[providerv1.Cause_CAUSE_NETWORK]+causes[providerv1.Cause_CAUSE_CREDENTIAL]+causes[providerv1.Cause_CAUSE_THROTTLED] > 0
}

// unavailable answers when no account can serve.
func (x *exchange) unavailable(f placement.Forecast) {
	causes := causeCounts(f.Causes)
	if len(causes) == 1 && causes[providerv1.Cause_CAUSE_NETWORK] > 0 {
		x.unreachable()
		return
	}
	x.ownAnswer(reply{
		sentence: x.unavailableSentence(causes, f), causes: causes, forecast: f,
	}, "unavailable", "no_eligible_account")
}

// searchEnded answers when the bound of attempts, and not the pool, ended the search.
func (x *exchange) searchEnded() {
	if x.attempts > 0 && x.cutOff == x.attempts {
		x.unreachable()
		return
	}
	x.ownAnswer(reply{
		sentence: fmt.Sprintf("Noria stopped after %s for this request without finding one of your %s accounts that can serve it%s. Try again, or see noria status.",
			counted(len(x.tried), "attempt"), x.provider, x.lackingNote()),
		causes: map[providerv1.Cause]int{providerv1.Cause_CAUSE_TRIED: len(x.tried)},
	}, "unavailable", "attempts_exhausted")
}

// stateAway answers when it could not be asked which account serves.
func (x *exchange) stateAway(err error) {
	x.proxy.log.Error("placement failed", "request", x.id, "error", err)
	x.ownAnswer(reply{sentence: "Noria cannot serve this request: its state is not available. See noria doctor."}, "unavailable", "no_account")
}

// unreachable answers when the upstream cannot be reached, with all accounts or with the only one that may be tried.
func (x *exchange) unreachable() {
	x.ownAnswer(reply{
		sentence: fmt.Sprintf("Noria could not reach the %s service over the network. Nothing was moved. Try again.", x.provider),
		causes:   map[providerv1.Cause]int{providerv1.Cause_CAUSE_NETWORK: max(x.cutOff, 1)},
	}, "network", "network")
}

// refusedByAccount answers in place of a 401 or 403 that says nothing certain of the account.
func (a *attempt) refusedByAccount(status int) {
	a.close()
	a.ownAnswer(reply{
		sentence: fmt.Sprintf("The %s service refused the account %s (HTTP %d) for a reason that Noria could not tell. See noria accounts list.",
			a.provider, a.account.Name, status),
		causes: map[providerv1.Cause]int{providerv1.Cause_CAUSE_TRIED: 1},
	}, "auth_failed", "permission_denied")
}

// adapterAway answers when a lease is needed and the adapter cannot give one.
func (x *exchange) adapterAway() {
	now := x.proxy.clock.Now()
	x.answer(x.profile.fallbacks.adapterAway, placeholderValues{
		sentence: fmt.Sprintf("Noria cannot serve this request: the %s adapter is not ready. See noria plugins list.", x.provider),
		now:      now, request: x.id,
	})
	x.recordOwn("unavailable", "adapter_away")
}

// ownAnswer has the adapter shape a reply and sends it.
func (x *exchange) ownAnswer(r reply, outcome, reason string) {
	if x.clientLeft() {
		x.recordEnd("", "canceled", "client_left")
		return
	}
	now := x.proxy.clock.Now()
	shape, ok := x.shaped(r, now)
	if !ok {
		shape = x.profile.fallbacks.unavailable
		if !r.forecast.At.IsZero() && !passing(r.causes) {
			shape = x.profile.fallbacks.unavailableUntil
		}
	}
	x.answer(shape, placeholderValues{sentence: r.sentence, resetsAt: r.forecast.At, now: now, request: x.id})
	x.recordOwn(outcome, reason)
}

func (x *exchange) recordOwn(outcome, reason string) {
	x.record(Event{Operation: "unavailable", Status: x.sent.status, Outcome: outcome, Reason: reason})
	x.recordEnd("", outcome, reason)
}

// shaped asks the adapter for the client's shape. Its answer holds no placeholders.
func (x *exchange) shaped(r reply, now time.Time) (*template, bool) {
	ctx, cancel := context.WithTimeout(x.in.Context(), shapeTime)
	defer cancel()
	req := &providerv1.UnavailableRequest{
		RequestId: x.id, Route: x.kind, Model: x.who.model, Streaming: x.streaming(), Causes: causeList(r.causes),
		GoverningWindow: r.forecast.Window, ForecastKind: forecastKind(r.forecast.Kind), Sentence: r.sentence,
		Now: timestamppb.New(now),
	}
	if !r.forecast.At.IsZero() {
		req.ForecastAt = timestamppb.New(r.forecast.At)
	}
	declared, err := x.proxy.adapters.Unavailable(ctx, x.provider, req)
	if err != nil {
		return nil, false
	}
	shape, err := compileTemplate(declared)
	if err != nil {
		x.proxy.log.Warn("answer of adapter not usable", "provider", x.provider, "request", x.id, "error", err)
		return nil, false
	}
	shape.hasPlaceholders = false
	return shape, true
}

func causeList(counts map[providerv1.Cause]int) []*providerv1.CauseCount {
	var list []*providerv1.CauseCount
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, &providerv1.CauseCount{Cause: cause, Accounts: int32(counts[cause])})
	}
	return list
}

// causeCounts reads the forecast's words for what keeps accounts away.
func causeCounts(words map[string]int) map[providerv1.Cause]int {
	counts := map[providerv1.Cause]int{}
	for word, n := range words {
		counts[causeOf(word)] += n
	}
	return counts
}

func causeOf(word string) providerv1.Cause {
	switch word {
	case string(quota.CauseQuota):
		return providerv1.Cause_CAUSE_QUOTA
	case string(quota.CauseAuth):
		return providerv1.Cause_CAUSE_AUTH
	case string(quota.CauseNotEntitled), placement.FilteredModel:
		return providerv1.Cause_CAUSE_NOT_ENTITLED
	case string(quota.CauseThrottle):
		return providerv1.Cause_CAUSE_THROTTLED
	case string(quota.CauseNetwork):
		return providerv1.Cause_CAUSE_NETWORK
	case string(quota.CauseCredential):
		return providerv1.Cause_CAUSE_CREDENTIAL
	case placement.FilteredDisabled:
		return providerv1.Cause_CAUSE_DISABLED
	}
	return providerv1.Cause_CAUSE_TRIED
}

func forecastKind(k placement.ForecastKind) providerv1.ForecastKind {
	switch k {
	case placement.ForecastExact:
		return providerv1.ForecastKind_FORECAST_KIND_EXACT
	case placement.ForecastNoLaterThan:
		return providerv1.ForecastKind_FORECAST_KIND_NO_LATER_THAN
	}
	return providerv1.ForecastKind_FORECAST_KIND_UNKNOWN
}
