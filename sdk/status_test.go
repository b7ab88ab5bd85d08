package sdk_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

func TestAStatusAloneIsReadCautiously(t *testing.T) {
	tests := []struct {
		status  int
		outcome sdk.Outcome
		scope   sdk.Scope
	}{
		{400, sdk.OutcomeClientError, sdk.ScopeRequest},
		{401, sdk.OutcomeAuthFailed, sdk.ScopeAccount},
		{403, sdk.OutcomeUnknownError, sdk.ScopeRequest},
		{404, sdk.OutcomeClientError, sdk.ScopeRequest},
		{429, sdk.OutcomeThrottled, sdk.ScopeAccount},
		{500, sdk.OutcomeOverloaded, sdk.ScopeProvider},
		{529, sdk.OutcomeOverloaded, sdk.ScopeProvider},
		{200, sdk.OutcomeUnknownError, sdk.ScopeRequest},
		{600, sdk.OutcomeUnknownError, sdk.ScopeRequest},
	}
	for _, test := range tests {
		verdict := sdk.VerdictByStatus(sdk.Response{Status: test.status, Header: http.Header{"Retry-After": {"30"}}})
		if verdict.Outcome != test.outcome || verdict.Scope != test.scope || verdict.Reason == "" {
			t.Errorf("%d: %+v", test.status, verdict)
		}
		if (verdict.RetryAfter == 30*time.Second) != (test.status == 429) {
			t.Errorf("%d: pause %s", test.status, verdict.RetryAfter)
		}
	}
}
