package quota

import "testing"

func TestModelMatches(t *testing.T) {
	for name, c := range map[string]struct {
		patterns []string
		model    string
		want     bool
	}{
		"an empty list covers every model":              {nil, "opus-4", true},
		"an empty list covers an unknown model":         {nil, "", true},
		"an unknown model is covered by no name":        {[]string{"*"}, "", false},
		"an exact name":                                 {[]string{"opus-4"}, "opus-4", true},
		"a name is not a prefix":                        {[]string{"opus"}, "opus-4", false},
		"a star stands for a run":                       {[]string{"claude-opus-*"}, "claude-opus-4-1", true},
		"a star stands for nothing as well":             {[]string{"opus*"}, "opus", true},
		"pieces come in order":                          {[]string{"*opus*4*"}, "claude-4-opus", false},
		"the last piece is at the end":                  {[]string{"*-mini"}, "gpt-5-mini-x", false},
		"overlapping pieces do not count twice":         {[]string{"ab*ba"}, "aba", false},
		"a variant in brackets is not part of the name": {[]string{"claude-opus-4"}, "claude-opus-4[1m]", true},
		"an unclosed bracket is part of the name":       {[]string{"claude-opus-4"}, "claude-opus-4[1m", false},
		"any of the list":                               {[]string{"a", "b*"}, "bc", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ModelMatches(c.patterns, c.model); got != c.want {
				t.Errorf("ModelMatches(%q, %q) = %v", c.patterns, c.model, got)
			}
		})
	}
}

func TestCountsAreBounded(t *testing.T) {
	var c Counts
	for i := range 3 * maxModels {
		c = c.Add(string(rune('A'+i)), 1)
	}
	if len(c) != maxModels+1 || c.Total() != 3*maxModels || c.Of(OtherModels) != 2*maxModels {
		t.Errorf("%d models, %d in all, %d others", len(c), c.Total(), c.Of(OtherModels))
	}
}

func TestCountsNeverFallBelowZero(t *testing.T) {
	c := Counts{}.Add("m", 1).Add("m", -5)
	if c.Of("m") != 0 {
		t.Errorf("count = %d", c.Of("m"))
	}
}
