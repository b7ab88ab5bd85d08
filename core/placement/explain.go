package placement

import "github.com/noria-dev/noria/core/quota"

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
