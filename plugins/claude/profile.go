package claude

import (
	"net/http"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// profile declares what Claude Code 2.1 sends to a base URL and what it understands. Everything else of the client's
// goes to the vendor by itself.
func profile() sdk.Profile {
	return sdk.Profile{
		Routes: []sdk.Route{
			{Method: http.MethodPost, Path: "/v1/messages", Kind: sdk.RouteTurn, Retryable: true},
			{Method: http.MethodPost, Path: "/v1/messages/count_tokens", Kind: sdk.RouteAux, Retryable: true},
			{Method: http.MethodGet, Path: "/v1/models", Kind: sdk.RouteAux, Retryable: true},
			// The client warms its connection up with these; they carry neither session nor key.
			{Method: http.MethodHead, Path: "/", Kind: sdk.RouteLocal, Local: &sdk.Answer{Status: http.StatusOK}},
			{Method: http.MethodHead, Path: "/api/hello", Kind: sdk.RouteLocal, Local: &sdk.Answer{Status: http.StatusOK}},
		},
		Identity:  identity(),
		Exposure:  exposure(),
		Stream:    stream(),
		Headers:   sdk.HeaderPolicy{Credentials: []string{"authorization", "x-api-key", "cookie"}},
		Fallbacks: fallbacks(),
		// No figure is published: work of the last seconds may not be counted yet.
		UsageLag: 5 * time.Second,
		Windows:  declaredWindows(),
	}
}

// identity: the header is there since 2.1.86 and agrees with the body; older clients carry the session in
// metadata.user_id, first as user_…_session_<uuid>, later as JSON inside the string.
func identity() sdk.Identity {
	return sdk.Identity{
		Session: []sdk.Extractor{
			{Header: "x-claude-code-session-id"},
			{BodyPointer: "/metadata/user_id", Inner: "/session_id"},
			{BodyPointer: "/metadata/user_id", Pattern: `_session_([0-9A-Fa-f-]{36})$`},
		},
		Subagent: []sdk.Extractor{{Header: "x-claude-code-agent-id"}},
		// A long context is asked for by a suffix of the model's name.
		Model:     []sdk.Extractor{{BodyPointer: "/model", Pattern: `^(.+?)(?:\[1m\])?$`}},
		Streaming: []sdk.Extractor{{BodyPointer: "/stream"}},
	}
}

func exposure() sdk.Exposure {
	return sdk.Exposure{
		ResponseHeaders: []string{
			"anthropic-ratelimit-*", "retry-after", "retry-after-ms", "x-should-retry", "content-type", "cf-mitigated",
		},
		UrgentHeaders: []string{
			headerPrefix + "status", headerPrefix + "5h-status", headerPrefix + "7d-status",
			headerPrefix + "representative-claim", headerPrefix + "overage-in-use",
		},
		ErrorBodyBytes: 16 << 10,
	}
}

// stream: message_start holds metadata only, so an error after it is still early.
func stream() sdk.StreamGrammar {
	return sdk.StreamGrammar{
		Framing:     sdk.FramingSSE,
		TypePointer: "/type",
		Preamble:    []string{"message_start", "ping"},
		Inspected:   []string{"error"},
		Terminal:    []string{"message_stop", "error"},
	}
}

func declaredWindows() []sdk.WindowDeclaration {
	return []sdk.WindowDeclaration{
		{ID: windowFiveHour, Kind: sdk.WindowSession, Length: fiveHours},
		{ID: windowSevenDay, Kind: sdk.WindowWeekly, Length: sevenDays},
	}
}
