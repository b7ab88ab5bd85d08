package sdk

import (
	"testing"
	"time"
)

func TestALoginIsRenewedOncePerVersionAndMinute(t *testing.T) {
	at := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	var r Renewals
	steps := []struct {
		login, version string
		after          time.Duration
		due            bool
	}{
		{"a", "1", 0, true},
		{"a", "1", renewEvery - 1, false},
		{"b", "1", renewEvery - 1, true},
		{"a", "2", renewEvery - 1, true},
		{"a", "2", 2*renewEvery - 2, false},
		{"a", "2", 2*renewEvery - 1, true},
	}
	for _, s := range steps {
		if due := r.Due(s.login, s.version, at.Add(s.after)); due != s.due {
			t.Errorf("login %s, version %s after %v: due %v", s.login, s.version, s.after, due)
		}
	}
}
