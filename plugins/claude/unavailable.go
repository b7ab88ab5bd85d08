package claude

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/noria-dev/noria/sdk"
)

// headerRetry tells the client whether to ask again. Without it the client's own rules hold.
const headerRetry = "x-should-retry"

// mixedClaim is no window's name to the client: it says "usage limit" then, with the time.
const mixedClaim = "noria_pool"

// Unavailable answers a request that no account can serve.
//
// With a known reset it is a quota answer: the client stops at once, shows the time, and the newer one goes on by itself
// after it. Without one, or when somebody has to sign in, it is a 503 that is not to be retried, whose message the client
// shows as it is. Limit headers on any status but 429 would mislead the client's own display. Where the network or the
// like is among the causes it is a 503 as the client knows it: it asks again up to ten times within three minutes, and
// then shows the message.
func (*Adapter) Unavailable(_ context.Context, req sdk.Unavailability) (sdk.Answer, error) {
	switch {
	case req.Passing():
		return retryable(unavailable(req.Sentence)), nil
	case req.Causes[sdk.CauseQuota] == 0 || !req.ForecastAt.After(req.Now):
		return unavailable(req.Sentence), nil
	}
	return limited(req.Sentence, claimOf(req.GoverningWindow), strconv.FormatInt(req.ForecastAt.Unix(), 10)), nil
}

// claimOf gives the client's word for a window. Windows are named by those words here.
func claimOf(window string) string {
	if claimPattern.MatchString(window) {
		return window
	}
	return mixedClaim
}

// fallbacks are the same answers as templates, for when the adapter is not asked.
func fallbacks() sdk.Fallbacks {
	const sentence, reset = "{{sentence}}", "{{reset_unix}}"
	return sdk.Fallbacks{
		WrongKey: errorAnswer(http.StatusUnauthorized, "authentication_error",
			"Noria: the client key is missing or wrong. Start the client with: noria run claude"),
		UnknownPath: errorAnswer(http.StatusNotFound, "not_found_error",
			"Noria: Claude Code does not use this path."),
		UnavailableUntil: limited(sentence, mixedClaim, reset),
		Unavailable:      unavailable(sentence),
		AdapterAway:      unavailable(sentence),
	}
}

func limited(sentence, claim, resetUnix string) sdk.Answer {
	answer := errorAnswer(http.StatusTooManyRequests, "rate_limit_error", sentence)
	answer.Header[headerPrefix+"status"] = "rejected"
	answer.Header[headerPrefix+"reset"] = resetUnix
	answer.Header[headerPrefix+"representative-claim"] = claim
	return answer
}

func unavailable(sentence string) sdk.Answer {
	return errorAnswer(http.StatusServiceUnavailable, "api_error", sentence)
}

// errorAnswer is an error in the provider's shape that the client does not retry.
func errorAnswer(status int, errorType, message string) sdk.Answer {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	// Strings always marshal.
	body, _ := json.Marshal(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{errorType, message}})
	return sdk.Answer{
		Status: status,
		Header: map[string]string{
			"content-type": "application/json", headerRetry: "false",
		},
		Body: body,
	}
}

// retryable leaves it to the client how often it asks again.
func retryable(answer sdk.Answer) sdk.Answer {
	delete(answer.Header, headerRetry)
	return answer
}
