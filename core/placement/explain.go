package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// When writes a time for the reader of an explanation.
type When func(time.Time) string

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// Explain is [ExplainFor] with dates and times in UTC.
func Explain(d Decision) string { return ExplainFor(d, timestamp) }

// ExplainFor gives the whole reasoning of a decision: one sentence, then a table of what filtered each candidate or of the
// terms of its score. The columns are those of [Columns].
func ExplainFor(d Decision, when When) string {
	var b strings.Builder
	b.WriteString(Sentence(d, when))
	b.WriteString("\n")
	if len(d.Candidates) == 0 {
		return b.String()
	}
	b.WriteString("\n")
	writeCandidates(&b, d, when)
	return trimLines(b.String())
}

// writeCandidates has a row for each window of each account, and one for an account that was not even looked at. Why one
// with windows was filtered stands below its rows: a sentence between the rows of a table would end its columns.
func writeCandidates(b *strings.Builder, d Decision, when When) {
	var rows strings.Builder
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	header := "  ACCOUNT\tFILTERED\tWHY"
	if slices.ContainsFunc(d.Candidates, func(c Candidate) bool { return c.Class != "" }) {
		header = "  ACCOUNT\tCLASS\tSCORE\tWINDOW\tSTATE\tREAD\tUSED\tRESERVED\tCOMMITTED\tNEW\tPER REQUEST\tHOURS\tRATE\tSUSTAINED"
	}
	fmt.Fprintln(table, header)
	below := map[int]string{}
	written := 1
	for _, c := range ranked(d) {
		why := c.Detail + Until(c.ClearsAt, c.NoLaterThan, when)
		if c.Class == "" {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", c.Account, c.Filtered, why)
			written++
			continue
		}
		written += c.writeRows(table, c.Account == d.Account && d.Placed)
		if c.Filtered != "" {
			below[written] = why
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	number := 0
	for line := range strings.Lines(rows.String()) {
		number++
		b.WriteString(line)
		if sentence := below[number]; sentence != "" {
			b.WriteString("    " + sentence + "\n")
		}
	}
}

// Columns tells what the columns of an explanation mean.
const Columns = `CLASS        known, stale or unknown: what is known of the account's windows, or else what filtered it
SCORE        the least RATE of its windows as a multiple of their least SUSTAINED: at 1 the allowance lasts
             exactly until the reset, above it some may expire unused, below 0 the session may not fit
READ         percent used as the provider last told it
USED         READ, and what requests that ended since then took
RESERVED     percent that requests in flight will take
COMMITTED    percent that the sessions of the account will take until the reset
NEW          percent that the new session will take until the reset
PER REQUEST  percent that one request takes, as learned
HOURS        hours until the reset; the window's length if the reset is not known
RATE         requests an hour that what is left allows until the reset
SUSTAINED    requests an hour that the whole window allows over its length`

// writeRows writes the rows of one account and returns their number.
func (c *Candidate) writeRows(table *tabwriter.Writer, chosen bool) int {
	name := "  " + c.Account.String()
	if chosen {
		name = "* " + c.Account.String()
	}
	class, score := cmp.Or(c.Filtered, string(c.Class)), c.scoreText()
	if len(c.Terms) == 0 {
		fmt.Fprintf(table, "%s\t%s\t%s\tno window applies\n", name, class, score)
		return 1
	}
	for i := range c.Terms {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, class, score, c.Terms[i].row())
		name, class, score = "", "", ""
	}
	return len(c.Terms)
}

// scoreText is a dash where no window gives a score.
func (c *Candidate) scoreText() string {
	if c.Class == ClassUnknown || !slices.ContainsFunc(c.Terms, func(t Term) bool { return t.Known() }) {
		return "-"
	}
	return fmt.Sprintf("%.3f", c.Score)
}

// row has a ~ before what is reckoned and not observed, and a dash for what is unknown.
func (t *Term) row() string {
	head := cmp.Or(t.Name, t.Window) + "\t" + strings.ReplaceAll(t.State, "_", " ") + "\t"
	if !t.Known() {
		return head + "-\t-\t-\t-\t-\t-\t-\t-\t-"
	}
	read, used := "-", fmt.Sprintf("~%.2f%%", t.Used)
	if t.HasObserved {
		read = fmt.Sprintf("%.4g%%", t.Observed)
		if t.Used == t.Observed {
			used = read
		}
	}
	hours := fmt.Sprintf("%.2f", t.HoursLeft)
	if t.State != string(quota.StateObserved) {
		hours = "~" + hours
	}
	return head + fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t~%.3g%%\t%s\t~%.2f\t~%.2f",
		read, used, reckoned(t.Reserved), reckoned(t.Committed), reckoned(t.New), t.Kappa, hours, t.Rate, t.Sustainable)
}

// reckoned is the share of some work; where there is none it is no estimate.
func reckoned(percent float64) string {
	if percent == 0 {
		return "0%"
	}
	return fmt.Sprintf("~%.2f%%", percent)
}

// Sentence says in words what was decided and why.
func Sentence(d Decision, when When) string {
	if !d.Placed {
		return "No account can serve: " + CausesInWords(d.Forecast.Causes) + ". " + d.Forecast.Sentence(when) + "."
	}
	name := d.Account.String()
	switch d.How {
	case HowBound:
		return "Stays on " + name + ": the session lives there."
	case HowFollow:
		return "Goes to " + name + ": another request of the session is being placed there."
	case HowSibling:
		return "Goes to " + name + ": the session lives there for another model."
	}
	rivals := 0
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if c.Account != d.Account && c.Filtered == "" && c.Known() == (d.How == HowKnown) {
			rivals++
		}
	}
	if d.How == HowCautious {
		return "Goes to " + name + ", as a cautious attempt: " + cautiously(rivals)
	}
	switch {
	case rivals == 0:
		return fmt.Sprintf("Goes to %s: no other account can serve whose windows are known; score %.3f.", name, d.Score)
	case d.Margin > tie:
		return fmt.Sprintf("Goes to %s: the greatest score of %d accounts, %.3f, ahead by %.3f.", name, rivals+1, d.Score, d.Margin)
	}
	return fmt.Sprintf("Goes to %s: tied with others of %d accounts at score %.3f; the least work decides, then the longest rest, then the order in noria.hcl.",
		name, rivals+1, d.Score)
}

func cautiously(rivals int) string {
	if rivals == 0 {
		return "no other account can serve, and not all of its windows are known."
	}
	return fmt.Sprintf("none of %d accounts has all of its windows known.", rivals+1)
}

// Sentence says when somebody can serve again, without a full stop.
func (f Forecast) Sentence(when When) string {
	switch f.Kind {
	case ForecastExact:
		return fmt.Sprintf("%s can serve again from %s", f.Account, when(f.At))
	case ForecastNoLaterThan:
		return fmt.Sprintf("%s can serve again by %s", f.Account, when(f.At))
	}
	return "It is not known when that changes" + f.remedy()
}

// remedy is what a person can do, when no clock clears anything.
func (f Forecast) remedy() string {
	switch {
	case f.Causes[string(quota.CauseAuth)] > 0:
		if f.Account != (quota.AccountID{}) {
			return "; sign in again with noria connect " + f.Account.String()
		}
		return "; sign in again with noria connect"
	case f.Causes[FilteredDisabled] > 0:
		return "; enable an account with noria accounts enable"
	case f.Causes[FilteredModel]+f.Causes[string(quota.CauseNotEntitled)] > 0:
		return "; add an account that serves the model"
	}
	return ""
}

// CausesInWords counts accounts by what keeps them away.
func CausesInWords(counts map[string]int) string {
	if len(counts) == 0 {
		return "none is configured"
	}
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[cause], inWords(cause)))
	}
	return strings.Join(parts, ", ")
}

// inWords says what a cause or a filter makes of an account.
func inWords(cause string) string {
	switch cause {
	case string(quota.CauseQuota):
		return "out of quota"
	case string(quota.CauseAuth):
		return "signed out"
	case string(quota.CauseNotEntitled):
		return "not entitled"
	case string(quota.CauseThrottle):
		return "throttled"
	case string(quota.CauseNetwork):
		return "unreachable"
	case string(quota.CauseCredential):
		return "without a credential for now"
	case FilteredDisabled:
		return "disabled"
	case FilteredModel:
		return "not for this model"
	case FilteredTried:
		return "tried without success"
	}
	return cause
}

// Describe says in words what keeps an account away.
func Describe(b quota.Blocker) string {
	text := inWords(string(b.Cause))
	if b.Shown {
		text = "shown as used up"
	}
	if b.Window != "" {
		text += " (" + b.Window + ")"
	}
	if b.Model != "" {
		text += " for " + b.Model
	}
	return text
}

// Until says when something ends that clears at the one time, or at the other at the latest; empty when neither is known.
func Until(clearsAt, noLaterThan time.Time, when When) string {
	switch {
	case !clearsAt.IsZero():
		return " until " + when(clearsAt)
	case !noLaterThan.IsZero():
		return " until " + when(noLaterThan) + " at the latest"
	}
	return ""
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// ranked are the candidates of a decision: the chosen one, then the best ranked, then those that were filtered.
func ranked(d Decision) []Candidate {
	candidates := slices.Clone(d.Candidates)
	slices.SortStableFunc(candidates, func(a, b Candidate) int {
		switch {
		case (a.Account == d.Account) != (b.Account == d.Account):
			return first(a.Account == d.Account)
		case (a.Filtered == "") != (b.Filtered == ""):
			return first(a.Filtered == "")
		case a.rank() != b.rank():
			return first(a.rank().before(b.rank()))
		}
		return cmp.Compare(b.Score, a.Score)
	})
	return candidates
}

func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}
