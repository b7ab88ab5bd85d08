package quota

import "strings"

// maxModels bounds the models that are told apart on one account.
const maxModels = 16

// OtherModels stands for all models beyond a bound, counted together.
const OtherModels = "*"

// ModelMatches reports whether a model is covered by a list of names or patterns, where * stands for any run of
// characters. An empty list covers every model; an empty model only such a list. A suffix in brackets, which clients put
// behind a name to ask for a variant, is not part of the name.
func ModelMatches(patterns []string, model string) bool {
	if len(patterns) == 0 {
		return true
	}
	if model == "" {
		return false
	}
	if i := strings.IndexByte(model, '['); i > 0 && strings.HasSuffix(model, "]") {
		model = model[:i]
	}
	for _, pattern := range patterns {
		if pattern == model || (strings.Contains(pattern, "*") && wildcard(pattern, model)) {
			return true
		}
	}
	return false
}

// wildcard matches the literal pieces of the pattern from left to right, the last one at the end.
func wildcard(pattern, s string) bool {
	first, rest, _ := strings.Cut(pattern, "*")
	s, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	for {
		piece, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(s, piece)
		}
		at := strings.Index(s, piece)
		if at < 0 {
			return false
		}
		s, rest = s[at+len(piece):], more
	}
}

// ModelCount is a number of requests of one model.
type ModelCount struct {
	Model string `json:"model"`
	Count uint64 `json:"count"`
}

// Counts are numbers of requests per model. There are few models, so a list is searched faster than a map.
type Counts []ModelCount

// Of gives the count of one model.
func (c Counts) Of(model string) uint64 {
	for i := range c {
		if c[i].Model == model {
			return c[i].Count
		}
	}
	return 0
}

// Total gives the count of all models.
func (c Counts) Total() uint64 {
	var n uint64
	for i := range c {
		n += c[i].Count
	}
	return n
}

// Add changes the count of one model in place, never below zero, and returns the list.
func (c Counts) Add(model string, delta int) Counts {
	for i := range c {
		if c[i].Model == model {
			c[i].Count = shifted(c[i].Count, delta)
			return c
		}
	}
	if len(c) >= maxModels && model != OtherModels {
		return c.Add(OtherModels, delta)
	}
	return append(c, ModelCount{Model: model, Count: shifted(0, delta)})
}

func shifted(n uint64, delta int) uint64 {
	if delta < 0 && uint64(-delta) > n {
		return 0
	}
	return n + uint64(delta)
}

// Clone copies the list.
func (c Counts) Clone() Counts { return append(Counts(nil), c...) }

// since is how many requests of the model came after the earlier count; an earlier count that is greater gives none.
func (c ModelCount) since(earlier Counts) float64 {
	before := earlier.Of(c.Model)
	if c.Count <= before {
		return 0
	}
	return float64(c.Count - before)
}
