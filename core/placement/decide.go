package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/noria-dev/noria/core/quota"
)

// View is what a decision is made from. Nothing in it is changed. All accounts are settled to the time of the request.
type View struct {
	// Accounts of the provider, in configuration order.
	Accounts []*quota.Account
	// Bound is the account of the session's binding for the model, nil without one. Pending is where another request of
	// the session is being placed for the model at present. Siblings are where the session lives, or is being placed,
	// for other models, the most recently accepted first.
	Bound, Pending *quota.Account
	Siblings       []*quota.Account
	Demand         quota.Demand
	// Fit is φ: the share of the new session's expected work that has to fit.
	Fit float64
}

// DefaultFit is φ unless it is configured.
const DefaultFit = 0.5

// tie is the difference of scores below which they are equal.
const tie = 1e-9

// Decide chooses the account for a request. It is a function of its arguments alone.
func Decide(v View, req Request) Decision {
	req = v.elsewhere(req)
	if d, ok := v.Keep(req); ok {
		return d
	}
	candidates := v.candidates(req)
	chosen := choose(candidates)
	if chosen < 0 {
		chosen = v.chooseCooling(candidates, req)
	}
	d := Decision{At: req.At, Candidates: candidates}
	if chosen < 0 {
		d.Forecast = v.forecast(req)
		return d
	}
	c := &candidates[chosen]
	d.Placed, d.Account, d.How, d.Score = true, c.Account, HowCautious, c.Score
	if c.Known() {
		d.How = HowKnown
	}
	if v.Bound != nil && v.Bound.ID == c.Account {
		d.How, d.Bound = HowBound, true
	}
	d.Margin = margin(candidates, chosen)
	return d
}

// Keep takes the steps that come before any score: keep, follow, sibling. Of the accounts it looks at no others than those
// of the session.
func (v View) Keep(req Request) (Decision, bool) {
	req = v.elsewhere(req)
	if b := v.Bound; b != nil && !b.Paused(req.At) && able(b, req, false) {
		return Decision{Placed: true, Account: b.ID, How: HowBound, Bound: true, At: req.At}, true
	}
	if p := v.Pending; p != nil && free(p, req) {
		return Decision{Placed: true, Account: p.ID, How: HowFollow, At: req.At}, true
	}
	for _, s := range v.Siblings {
		if free(s, req) {
			return Decision{Placed: true, Account: s.ID, How: HowSibling, At: req.At}, true
		}
	}
	return Decision{}, false
}

// elsewhere keeps a detour from the account that it leaves.
func (v View) elsewhere(req Request) Request {
	if req.Detour && v.Bound != nil && !slices.Contains(req.Tried, v.Bound.ID) {
		req.Tried = append(slices.Clone(req.Tried), v.Bound.ID)
	}
	return req
}

// able: enabled, matching, not blocked for the model, not tried by this request.
func able(a *quota.Account, req Request, placing bool) bool {
	return a.Serves(req.Model) && !slices.Contains(req.Tried, a.ID) && !a.Blocked(req.Model, placing, req.At)
}

// free accounts take new placements: able, and not in a cooldown.
func free(a *quota.Account, req Request) bool {
	return able(a, req, true) && !a.Cooling(req.At)
}

// What filtered a candidate.
const (
	FilteredDisabled = "disabled"
	FilteredModel    = "model"
	FilteredTried    = "tried"
	FilteredBlocked  = "blocked"
	FilteredCooldown = "cooldown"
)

// Class of a candidate by what is known of its windows.
type Class string

// Classes: any known candidate goes before all others.
const (
	ClassKnown   Class = "known"
	ClassStale   Class = "stale"
	ClassUnknown Class = "unknown"
)

func (v View) candidates(req Request) []Candidate {
	windows := 0
	for _, a := range v.Accounts {
		windows += len(a.Windows)
	}
	candidates := make([]Candidate, 0, len(v.Accounts))
	terms := make([]Term, 0, windows)
	perHour, activeHours := v.Demand.PerHour(), v.Demand.ActiveHours()
	for _, a := range v.Accounts {
		candidates = append(candidates, Candidate{Account: a.ID})
		c := &candidates[len(candidates)-1]
		c.filter(a, req)
		if c.Filtered != "" && c.Filtered != FilteredCooldown {
			continue
		}
		s := scoring{account: a, model: req.Model, at: req.At, perHour: perHour, activeHours: activeHours, fit: v.Fit}
		first := len(terms)
		terms = s.score(c, terms)
		c.Terms = terms[first:len(terms):len(terms)]
	}
	return candidates
}

// filter notes what keeps an account from taking a new placement of the request, if anything does.
func (c *Candidate) filter(a *quota.Account, req Request) {
	switch {
	case !a.Enabled:
		c.Filtered, c.Detail = FilteredDisabled, "disabled in the configuration or by the operator"
	case !quota.ModelMatches(a.Models, req.Model):
		c.Filtered, c.Detail = FilteredModel, servesNot(req.Model)
	case slices.Contains(req.Tried, a.ID):
		c.Filtered, c.Detail = FilteredTried, "tried by this request"
	case a.Blocked(req.Model, true, req.At):
		c.Filtered = FilteredBlocked
		c.blocked(a, req)
	case a.Cooling(req.At):
		c.Filtered = FilteredCooldown
		c.blocked(a, req)
	}
}

func (c *Candidate) blocked(a *quota.Account, req Request) {
	clearing, _ := a.Clearing(req.Model, true, req.At)
	b := clearing.Governing
	b.Window = a.WindowName(b.Window)
	c.Detail = Describe(b)
	if c.ClearsAt = b.ClearsAt; b.Dated() {
		c.NoLaterThan = b.NoLaterThan
	}
}

func servesNot(model string) string {
	if model == "" {
		return "serves certain models only"
	}
	return "does not serve " + model
}

// choose picks among the candidates that nothing filtered; -1 if there is none.
func choose(candidates []Candidate) int {
	return pick(candidates, func(c *Candidate) bool { return c.Filtered == "" })
}

// chooseCooling picks among those that only a cooldown filtered, when there is no other: a pause is no reason to refuse
// work that can be served nowhere else. The session's own account comes first.
func (v View) chooseCooling(candidates []Candidate, req Request) int {
	if v.Bound != nil && able(v.Bound, req, false) {
		return slices.IndexFunc(candidates, func(c Candidate) bool { return c.Account == v.Bound.ID })
	}
	return pick(candidates, func(c *Candidate) bool { return c.Filtered == FilteredCooldown })
}

func pick(candidates []Candidate, takesPart func(*Candidate) bool) int {
	best := -1
	for i := range candidates {
		c := &candidates[i]
		if takesPart(c) && (best < 0 || c.rank().before(candidates[best].rank()) ||
			(c.rank() == candidates[best].rank() && c.Score > candidates[best].Score)) {
			best = i
		}
	}
	if best < 0 {
		return best
	}
	// Ties are taken from the greatest score, so that the order of the accounts decides only when nothing else does.
	top := &candidates[best]
	for i := range candidates {
		c := &candidates[i]
		if takesPart(c) && c.rank() == top.rank() && c.Score >= top.Score-tie && lighter(c, &candidates[best], i, best) {
			best = i
		}
	}
	return best
}

// rank orders candidates before their score does.
type rank struct{ class, unconfirmed, evidence int }

func (r rank) before(other rank) bool {
	if r.class != other.class {
		return r.class < other.class
	}
	if r.unconfirmed != other.unconfirmed {
		return r.unconfirmed < other.unconfirmed
	}
	return r.evidence < other.evidence
}

// rank of a known candidate is first. Of the others those with the fewest unconfirmed attempts, then those whose last
// evidence shows room, then those without evidence, then those whose last evidence shows none.
func (c *Candidate) rank() rank {
	switch {
	case c.Known():
		return rank{}
	case c.Class == ClassUnknown:
		return rank{class: 1, unconfirmed: c.Unconfirmed, evidence: 1}
	case c.Room:
		return rank{class: 1, unconfirmed: c.Unconfirmed, evidence: 0}
	}
	return rank{class: 1, unconfirmed: c.Unconfirmed, evidence: 2}
}

// lighter breaks ties: fewer live sessions and requests, then least recently placed, then configuration order.
func lighter(c, best *Candidate, at, bestAt int) bool {
	if c.Work != best.Work {
		return c.Work < best.Work
	}
	if !c.PlacedAt.Equal(best.PlacedAt) {
		return c.PlacedAt.Before(best.PlacedAt)
	}
	return at < bestAt
}

// margin to the best other candidate of the same class.
func margin(candidates []Candidate, chosen int) float64 {
	next := -1
	for i := range candidates {
		c := &candidates[i]
		if i == chosen || c.Filtered != "" || c.rank().class != candidates[chosen].rank().class {
			continue
		}
		if next < 0 || c.Score > candidates[next].Score {
			next = i
		}
	}
	if next < 0 {
		return 0
	}
	return candidates[chosen].Score - candidates[next].Score
}

// forecast is the earliest clearing over the enabled accounts that may serve the model.
func (v View) forecast(req Request) Forecast {
	f := Forecast{Kind: ForecastUnknown, Causes: map[string]int{}}
	boundOnly := false
	var first quota.Clearing
	var signedOut quota.AccountID
	for _, a := range v.Accounts {
		cause, clearing := v.clearing(a, req)
		f.Causes[cause]++
		if cause == string(quota.CauseAuth) {
			signedOut = a.ID
		}
		if clearing.At.IsZero() {
			boundOnly = boundOnly || passing(cause)
			continue
		}
		boundOnly = boundOnly || !clearing.Exact
		if first.At.IsZero() || clearing.At.Before(first.At) || (clearing.At.Equal(first.At) && clearing.Exact && !first.Exact) {
			first, f.Account = clearing, a.ID
		}
	}
	if first.At.IsZero() {
		if f.Causes[string(quota.CauseAuth)] == 1 {
			f.Account = signedOut
		}
		return f
	}
	f.At, f.Window, f.Kind = first.At, first.Governing.Window, ForecastExact
	if boundOnly {
		f.Kind = ForecastNoLaterThan
	}
	return f
}

// clearing gives the cause that keeps an account away and, if a clock clears it, when.
func (v View) clearing(a *quota.Account, req Request) (cause string, c quota.Clearing) {
	if !a.Enabled {
		return FilteredDisabled, c
	}
	if !quota.ModelMatches(a.Models, req.Model) {
		return FilteredModel, c
	}
	c, blocked := a.Clearing(req.Model, a != v.Bound, req.At)
	switch {
	case !blocked:
		return cmp.Or(string(a.Trouble(req.At)), FilteredTried), quota.Clearing{}
	case !c.Dated:
		c.At = time.Time{}
	}
	return string(c.Governing.Cause), c
}

// passing causes may be over at any moment, so that an account may serve sooner than any clock says.
func passing(cause string) bool {
	switch cause {
	case string(quota.CauseThrottle), string(quota.CauseNetwork), string(quota.CauseCredential), FilteredTried:
		return true
	}
	return false
}
