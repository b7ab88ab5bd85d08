package nearest_test

import (
	"testing"

	"github.com/noria-dev/noria/core/internal/nearest"
)

func TestWord(t *testing.T) {
	known := []string{"state", "status", "sessions", "serve"}
	for _, c := range []struct{ rule, given, want string }{
		{"a letter left out", "sesions", "sessions"},
		{"letters that changed places, over a shorter word", "stauts", "status"},
		{"the word itself", "serve", "serve"},
		{"nothing near", "doctor", ""},
		{"nothing given", "", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := nearest.Word(c.given, known); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
