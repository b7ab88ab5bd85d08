package proxy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/placement"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// causePhrase says what keeps one account away, and several.
type causePhrase struct {
	cause     providerv1.Cause
	one, more string
}

// causePhrases are in the order in which they are told. An adapter that is away keeps all accounts, and has an answer of
// its own.
var causePhrases = []causePhrase{
	{providerv1.Cause_CAUSE_QUOTA, "has used up its quota", "have used up their quota"},
	{providerv1.Cause_CAUSE_AUTH, "is signed out", "are signed out"},
	{providerv1.Cause_CAUSE_NOT_ENTITLED, "may not use this model", "may not use this model"},
	{providerv1.Cause_CAUSE_THROTTLED, "is throttled for a moment", "are throttled for a moment"},
	{providerv1.Cause_CAUSE_NETWORK, "cannot reach the service over the network", "cannot reach the service over the network"},
	{providerv1.Cause_CAUSE_CREDENTIAL, "cannot get its credential now", "cannot get their credential now"},
	{providerv1.Cause_CAUSE_TRIED, "was tried without success", "were tried without success"},
	{providerv1.Cause_CAUSE_DISABLED, "is disabled", "are disabled"},
}

// unavailableSentence tells in plain words why nobody can serve, until when, and what to do. It is one line of ASCII:
// one client shows it from a header.
func (x *exchange) unavailableSentence(causes map[providerv1.Cause]int, f placement.Forecast) string {
	return x.causeSentence(causes) + " " + x.forecastSentence(causes, f)
}

func (x *exchange) causeSentence(causes map[providerv1.Cause]int) string {
	total := 0
	var alone string
	var parts []string
	for _, phrase := range causePhrases {
		if n := causes[phrase.cause]; n > 0 {
			total += n
			alone = x.told(phrase, n)
			parts = append(parts, fmt.Sprintf("%d %s", n, alone))
		}
	}
	switch total {
	case 0:
		return fmt.Sprintf("Noria has no %s account that can serve this request.", x.provider)
	case 1:
		return fmt.Sprintf("Your %s account cannot serve this request: it %s.", x.provider, alone)
	}
	return fmt.Sprintf("None of your %d %s accounts can serve this request: %s.", total, x.provider, strings.Join(parts, ", "))
}

// told are the words of a cause for that many accounts.
func (x *exchange) told(phrase causePhrase, accounts int) string {
	words := phrase.more
	if accounts == 1 {
		words = phrase.one
	}
	if phrase.cause == providerv1.Cause_CAUSE_CREDENTIAL {
		words += x.lackingNote()
	}
	return words
}

func (x *exchange) forecastSentence(causes map[providerv1.Cause]int, f placement.Forecast) string {
	switch {
	case f.At.IsZero() && causes[providerv1.Cause_CAUSE_AUTH] > 0:
		return "Sign in again with noria connect " + x.provider + "/" + cmp.Or(f.Account.Name, "NAME") + "."
	case f.At.IsZero() && passing(causes):
		return "Try again."
	case f.At.IsZero() && causes[providerv1.Cause_CAUSE_DISABLED] > 0:
		return "Enable one with noria accounts enable " + x.provider + "/NAME."
	case f.At.IsZero():
		return "It is not known when that changes. See noria status."
	case f.Kind == placement.ForecastExact:
		return "The next one is free at " + x.proxy.moment(f.At) + "."
	}
	return "The next one is free no later than " + x.proxy.moment(f.At) + "."
}

// maxLacking bounds the accounts that one answer names.
const maxLacking = 3

// lackingNote tells which accounts' credentials could not be had, and what to do.
func (x *exchange) lackingNote() string {
	if len(x.lacking) == 0 {
		return ""
	}
	return " (" + strings.Join(x.lacking[:min(len(x.lacking), maxLacking)], "; ") + ")"
}

// clause makes a reason a part of a sentence.
func clause(reason string) string { return strings.TrimSuffix(printableASCII(reason), ".") }

// moment is a time for people: with the day when it is not today, and how long that is.
func (p *Proxy) moment(t time.Time) string {
	now := p.clock.Now().In(p.location)
	t = t.In(p.location)
	layout := "15:04 MST"
	if now.YearDay() != t.YearDay() || now.Year() != t.Year() {
		layout = "Mon Jan 2 15:04 MST"
	}
	return t.Format(layout) + ", in " + roughly(t.Sub(now))
}

// roughly rounds up to minutes.
func roughly(d time.Duration) string {
	minutes := int(max(d+time.Minute-1, 0) / time.Minute)
	days, hours := minutes/(24*60), minutes/60%24
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	}
	return fmt.Sprintf("%d min", minutes)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
