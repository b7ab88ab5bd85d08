package placement

import (
	"cmp"
	"slices"

	"github.com/noria-dev/noria/core/quota"
)

// describe says in words what keeps an account away.
func describe(b quota.Blocker) string {
	text := string(b.Cause)
	switch b.Cause {
	case quota.CauseQuota:
		text = "quota exhausted"
		if b.Shown {
			text = "quota shown as used up"
		}
	case quota.CauseAuth:
		text = "signed out"
	case quota.CauseNotEntitled:
		text = "not entitled"
	case quota.CauseThrottle:
		text = "throttled"
	case quota.CauseNetwork:
		text = "unreachable"
	}
	if b.Window != "" {
		text += " (" + b.Window + ")"
	}
	if b.Model != "" {
		text += " for " + b.Model
	}
	return text
}

// Best are at most limit candidates of a decision: the chosen one, then the best scored, then what filtered the others.
func Best(d Decision, limit int) []Candidate {
	candidates := slices.Clone(d.Candidates)
	slices.SortStableFunc(candidates, func(a, b Candidate) int {
		switch {
		case (a.Account == d.Account) != (b.Account == d.Account):
			return order(a.Account == d.Account)
		case (a.Filtered == "") != (b.Filtered == ""):
			return order(a.Filtered == "")
		case a.rank() != b.rank():
			return order(a.rank().before(b.rank()))
		}
		return cmp.Compare(b.Score, a.Score)
	})
	return slices.Clone(candidates[:min(limit, len(candidates))])
}

func order(first bool) int {
	if first {
		return -1
	}
	return 1
}
