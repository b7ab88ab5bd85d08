package simulated

import "github.com/noria-dev/noria/sdk"

// Types of the events of a streamed answer, in their order.
const (
	eventStart = "start"
	eventPing  = "ping"
	eventText  = "text"
	eventError = "error"
	eventDone  = "done"
)

// sessionHeader carries the client's session.
const sessionHeader = "X-Simulated-Session"

// profile declares the wire: POST /v1/turns answers as a stream or, with "stream": false, in one piece.
func profile() sdk.Profile {
	asJSON := map[string]string{"Content-Type": "application/json"}
	return sdk.Profile{
		Routes: []sdk.Route{
			{Method: "POST", Path: "/v1/turns", Kind: sdk.RouteTurn, Retryable: true},
			{Method: "POST", Path: "/v1/count", Kind: sdk.RouteAux, Retryable: true},
			{Method: "GET", Path: "/v1/models", Kind: sdk.RouteAux, Retryable: true},
			{Method: "GET", Path: "/v1/hello", Kind: sdk.RouteLocal, Local: &sdk.Answer{
				Status: 200, Header: asJSON, Body: []byte(`{"hello":"simulated"}`),
			}},
		},
		Identity: sdk.Identity{
			Session:   []sdk.Extractor{{Header: sessionHeader}, {BodyPointer: "/session"}},
			Model:     []sdk.Extractor{{BodyPointer: "/model"}},
			Streaming: []sdk.Extractor{{BodyPointer: "/stream"}},
		},
		Exposure: sdk.Exposure{
			ResponseHeaders: []string{quotaHeaders + "*"},
			UrgentHeaders:   []string{headerRejectedBy},
			ErrorBodyBytes:  1024,
		},
		Stream: sdk.StreamGrammar{
			Framing:     sdk.FramingSSE,
			TypePointer: "/type",
			Preamble:    []string{eventStart, eventPing},
			Inspected:   []string{eventError},
			Terminal:    []string{eventDone},
		},
		Headers: sdk.HeaderPolicy{Credentials: []string{"Authorization"}},
		Fallbacks: sdk.Fallbacks{
			WrongKey:         sdk.Answer{Status: 401, Header: asJSON, Body: errorBody("wrong_key")},
			UnknownPath:      sdk.Answer{Status: 404, Header: asJSON, Body: errorBody("unknown_path")},
			Unavailable:      sdk.Answer{Status: 503, Header: asJSON, Body: errorBody("unavailable")},
			UnavailableUntil: sdk.Answer{Status: 429, Header: map[string]string{"Content-Type": "application/json", "Retry-After": "{{reset_seconds}}"}, Body: errorBody("unavailable")},
			AdapterAway:      sdk.Answer{Status: 503, Header: asJSON, Body: errorBody("adapter_away")},
		},
	}
}

func errorBody(code string) []byte {
	return []byte(`{"error":{"code":"` + code + `","message":"{{sentence}}"}}`)
}
