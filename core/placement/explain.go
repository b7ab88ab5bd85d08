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

// Explain gives the whole reasoning of a decision: one sentence, then a table of what filtered each candidate or of the
// terms of its score. Columns: percent of the window used, reserved by requests in flight, committed to the sessions that
// live there, and asked for by the new one; percent per request; hours to the reset; requests per hour that the rest
// sustains until then, and that the whole window sustains over its length.
func Explain(d Decision) string {
	var b strings.Builder
	b.WriteString(Sentence(d))
	b.WriteString("\n")
	if len(d.Candidates) == 0 {
		return b.String()
	}
	b.WriteString("\n")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	header := "ACCOUNT\tFILTERED\tWHY"
	if slices.ContainsFunc(d.Candidates, func(c Candidate) bool { return c.Class != "" }) {
		header = "ACCOUNT\tCLASS\tSLACK\tWINDOW\tSTATE\tUSED\tRESERVED\tCOMMITTED\tNEW\tPER REQUEST\tHOURS\tRATE\tSUSTAINED"
	}
	fmt.Fprintln(table, header)
	for _, c := range ranked(d) {
		c.writeRows(table, c.Account == d.Account && d.Placed)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return trimLines(b.String())
}

func (c *Candidate) writeRows(table *tabwriter.Writer, chosen bool) {
	name := c.Account.Name
	if chosen {
		name = "* " + name
	} else {
		name = "  " + name
	}
	if c.Class == "" {
		fmt.Fprintf(table, "%s\t%s\t%s\n", name, c.Filtered, c.Detail)
		return
	}
	class, slack := string(c.Class), fmt.Sprintf("%.3f", c.Score)
	if c.Class == ClassUnknown {
		slack = "-"
	}
	if c.Filtered != "" {
		class = c.Filtered
	}
	if len(c.Terms) == 0 {
		fmt.Fprintf(table, "%s\t%s\t%s\tno window applies\n", name, class, slack)
	}
	for _, t := range c.Terms {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t", name, class, slack, t.Window, t.State)
		if t.State == string(quota.StateUnknown) {
			fmt.Fprintln(table, "-\t-\t-\t-\t-\t-\t-\t-")
		} else {
			fmt.Fprintf(table, "%.2f\t%.2f\t%.2f\t%.2f\t%.4f\t%.2f\t%.2f\t%.2f\n",
				t.Used, t.Reserved, t.Committed, t.New, t.Kappa, t.HoursLeft, t.Rate, t.Sustainable)
		}
		name, class, slack = "", "", ""
	}
	if c.Filtered != "" {
		fmt.Fprintf(table, "\t\t%s\n", c.Detail)
	}
}

// Sentence says in words what was decided and why.
func Sentence(d Decision) string {
	if !d.Placed {
		return "No account can serve: " + causes(d.Forecast.Causes) + ". " + d.Forecast.Sentence() + "."
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
		return fmt.Sprintf("Goes to %s: the only account that can serve and whose windows are known, slack %.3f.", name, d.Score)
	case d.Margin > tie:
		return fmt.Sprintf("Goes to %s: the most slack of %d accounts, %.3f, ahead by %.3f.", name, rivals+1, d.Score, d.Margin)
	}
	return fmt.Sprintf("Goes to %s: slack %.3f like others of %d accounts, and the least work there.", name, d.Score, rivals+1)
}

func cautiously(rivals int) string {
	if rivals == 0 {
		return "no other account can serve, and not all of its windows are known."
	}
	return fmt.Sprintf("of none of %d accounts are all windows known.", rivals+1)
}

// Sentence says when somebody can serve again.
func (f Forecast) Sentence() string {
	if f.Kind == ForecastUnknown || f.Kind == "" {
		return "When that changes is not known" + f.remedy()
	}
	when := "At " + formatted(f.At)
	if f.Kind == ForecastNoLaterThan {
		when = "No later than " + formatted(f.At)
	}
	if f.Window != "" {
		return fmt.Sprintf("%s: %s of %s", when, f.Window, f.Account)
	}
	return fmt.Sprintf("%s: %s", when, f.Account)
}

// remedy is what a person can do, when no clock clears anything.
func (f Forecast) remedy() string {
	switch {
	case f.Causes[string(quota.CauseAuth)] > 0:
		return "; sign in again with noria connect"
	case f.Causes[FilteredDisabled] > 0:
		return "; enable an account with noria accounts enable"
	case f.Causes[FilteredModel]+f.Causes[string(quota.CauseNotEntitled)] > 0:
		return "; add an account that serves the model"
	}
	return ""
}

const timeLayout = "2006-01-02 15:04:05 MST"

func causes(counts map[string]int) string {
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
		return "tried in vain"
	}
	return cause
}

// describe says in words what keeps an account away.
func describe(b quota.Blocker) string {
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
	return text + describeEnd(b)
}

func describeEnd(b quota.Blocker) string {
	switch {
	case !b.ClearsAt.IsZero():
		return " until " + formatted(b.ClearsAt)
	case b.Dated():
		return ", no later than " + formatted(b.NoLaterThan)
	}
	return ""
}

func formatted(t time.Time) string { return t.UTC().Format(timeLayout) }

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
