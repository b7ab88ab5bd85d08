package sdk

import "net/http"

// JSONFallbacks makes all fallbacks of one JSON body in the client's own shape, which usually holds {{sentence}}, with
// the statuses that most clients understand: 401, 404, 429 when the time is known, else 503.
func JSONFallbacks(body string) Fallbacks {
	answer := func(status int) Answer {
		return Answer{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: []byte(body)}
	}
	return Fallbacks{
		WrongKey:         answer(http.StatusUnauthorized),
		UnknownPath:      answer(http.StatusNotFound),
		UnavailableUntil: answer(http.StatusTooManyRequests),
		Unavailable:      answer(http.StatusServiceUnavailable),
		AdapterAway:      answer(http.StatusServiceUnavailable),
	}
}
