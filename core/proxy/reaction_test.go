package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// TestReactionsFollowTheVerdict goes through every outcome and status: only a judged refusal that is about the account or
// one of its models does anything to the account, and a 401 or 403 never passes.
func TestReactionsFollowTheVerdict(t *testing.T) {
	onAccount := map[providerv1.Outcome]reaction{
		providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED: tryAnother,
		providerv1.Outcome_OUTCOME_NOT_ENTITLED:    tryAnother,
		providerv1.Outcome_OUTCOME_AUTH_FAILED:     renewLease,
		providerv1.Outcome_OUTCOME_THROTTLED:       makeDetour,
	}
	for number := range providerv1.Outcome_name {
		v := Verdict{Outcome: providerv1.Outcome(number)}
		for _, ofAccount := range []bool{true, false} {
			if _, can := onAccount[v.Outcome]; ofAccount && can {
				v.Rejection.Cause = quota.CauseQuota
			}
			for _, status := range []int{200, 400, 401, 403, 404, 413, 429, 500, 503, 529} {
				for _, judged := range []bool{true, false} {
					want := relayFailure
					if status == 401 || status == 403 {
						want = answerInstead
					}
					if v.Rejection.Cause != "" && judged {
						want = onAccount[v.Outcome]
					}
					c := circumstances{status: status, judged: judged, repeatable: true}
					if got := react(v, c); got != want {
						t.Errorf("%v, of the account %v, status %d, judged %v: %d, want %d", v.Outcome, ofAccount, status, judged, got, want)
					}
				}
			}
			v.Rejection = quota.Rejection{}
		}
	}
}

func TestReactionsFollowCircumstances(t *testing.T) {
	auth := Verdict{Outcome: providerv1.Outcome_OUTCOME_AUTH_FAILED, Rejection: quota.Rejection{Cause: quota.CauseAuth}}
	full := Verdict{Outcome: providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, Rejection: quota.Rejection{Cause: quota.CauseQuota}}
	for _, tt := range []struct {
		name    string
		verdict Verdict
		c       circumstances
		want    reaction
	}{
		{"a lease is renewed once only", auth, circumstances{status: 401, judged: true, renewed: true, repeatable: true}, tryAnother},
		{"what cannot be sent again is answered", auth, circumstances{status: 401, judged: true}, answerInstead},
		{"what cannot be sent again passes", full, circumstances{status: 429, judged: true}, relayFailure},
	} {
		if got := react(tt.verdict, tt.c); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestOnlyShortKnownPausesAreWaitedFor(t *testing.T) {
	for pause, want := range map[time.Duration]bool{0: false, time.Second: true, maxWait: true, maxWait + 1: false} {
		if _, got := waitable(quota.Rejection{RetryAfter: pause}); got != want {
			t.Errorf("%v: %v, want %v", pause, got, want)
		}
	}
}

func TestSentencesArePlain(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 min", time.Second: "1 min", 59 * time.Minute: "59 min", 60 * time.Minute: "1 h 0 min",
		25*time.Hour + time.Second: "1 d 1 h", 8*24*time.Hour + time.Minute: "8 d 0 h",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	x := &exchange{provider: "claude"}
	for _, tt := range []struct {
		causes map[providerv1.Cause]int
		want   string
	}{
		{nil, "Noria has no claude account that can serve this request."},
		{map[providerv1.Cause]int{providerv1.Cause_CAUSE_AUTH: 1}, "Your claude account cannot serve this request: it is signed out."},
		{map[providerv1.Cause]int{providerv1.Cause_CAUSE_QUOTA: 1, providerv1.Cause_CAUSE_DISABLED: 2},
			"None of your 3 claude accounts can serve this request: 1 has used up its quota, 2 are disabled."},
	} {
		if got := x.causeSentence(tt.causes); got != tt.want {
			t.Errorf("%v: %q, want %q", fmt.Sprint(tt.causes), got, tt.want)
		}
	}
}
