package codex

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/noria-dev/noria/sdk"
)

// Unavailable answers a request that no account can serve.
//
// With a known reset it is a usage limit, which ends the client's turn at once; it shows the time and the promo message,
// which is our sentence. Where the network or the like is among the causes it is one that the client asks again after.
// Everything else is a plain 400, which is terminal and shown as it is: the client repeats a 401 eighteen times and a 5xx
// thirty times.
func (*Adapter) Unavailable(_ context.Context, req sdk.Unavailability) (sdk.Answer, error) {
	switch {
	case req.Passing():
		return passing(req.Sentence), nil
	case req.Causes[sdk.CauseQuota] == 0 || !req.ForecastAt.After(req.Now):
		return sentenceAnswer(http.StatusBadRequest, req.Sentence), nil
	}
	unix := strconv.FormatInt(req.ForecastAt.Unix(), 10)
	seconds := strconv.FormatInt(int64(req.ForecastAt.Sub(req.Now).Seconds())+1, 10)
	// The client goes on with ", or try again at" and the time.
	return limited(printable(strings.TrimSuffix(req.Sentence, ".")), quote(req.Sentence), unix, seconds), nil
}

// passing is an answer that the client shows to its user at once and asks again after, five times, as long later as it is
// told. So it treats a status of the 400s that it has no meaning for; with a 5xx it asks thirty times.
func passing(sentence string) sdk.Answer {
	// The client goes on with ", url:" and where it asked.
	answer := sentenceAnswer(http.StatusFailedDependency, strings.TrimSuffix(sentence, "."))
	answer.Header["retry-after"] = "3"
	return answer
}

// fallbacks are the same answers as templates, for when the adapter is not asked.
func fallbacks() sdk.Fallbacks {
	const sentence = "{{sentence}}"
	return sdk.Fallbacks{
		WrongKey: sentenceAnswer(http.StatusBadRequest,
			"Noria: the client key is missing or wrong. Start the client with: noria run codex"),
		UnknownPath:      sentenceAnswer(http.StatusNotFound, "Noria: Codex does not use this path."),
		UnavailableUntil: limited(sentence, quote(sentence), "{{reset_unix}}", "{{reset_seconds}}"),
		Unavailable:      sentenceAnswer(http.StatusBadRequest, sentence),
		AdapterAway:      sentenceAnswer(http.StatusBadRequest, sentence),
	}
}

// limited takes its figures as text, so that templates can stand in their places.
func limited(promo, quotedSentence, resetUnix, resetSeconds string) sdk.Answer {
	body := `{"error":{"type":"usage_limit_reached","message":` + quotedSentence +
		`,"resets_at":` + resetUnix + `,"resets_in_seconds":` + resetSeconds + `}}`
	return sdk.Answer{
		Status: http.StatusTooManyRequests,
		Header: map[string]string{
			"content-type": "application/json", "x-codex-promo-message": promo,
		},
		Body: []byte(body),
	}
}

func sentenceAnswer(status int, sentence string) sdk.Answer {
	return sdk.Answer{
		Status: status,
		Header: map[string]string{"content-type": "text/plain; charset=utf-8"},
		Body:   []byte(sentence),
	}
}

func quote(text string) string {
	// Strings always marshal.
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// printable reduces text to what a header may hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
}
