package codex

import (
	"net/http"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// turnMetadata is a JSON document about the turn that Codex sends as a header and again in the body.
const turnMetadata = "x-codex-turn-metadata"

// profile declares what Codex 0.171 sends to a base URL and what it understands. Its calls about plugins, settings and
// the account go to the vendor by themselves.
func profile() sdk.Profile {
	return sdk.Profile{
		Routes:    routes(),
		Identity:  identity(),
		Exposure:  exposure(),
		Stream:    stream(),
		Headers:   headerPolicy(),
		Fallbacks: fallbacks(),
		// No figure is published: work of the last seconds may not be counted yet.
		UsageLag: 5 * time.Second,
	}
}

func routes() []sdk.Route {
	// The client tries a WebSocket first and falls back to HTTP, silently and for good, on 426. Nothing else asks for this.
	noUpgrade := sdk.Answer{Status: http.StatusMethodNotAllowed, Header: map[string]string{"allow": http.MethodPost}}
	return []sdk.Route{
		{Method: http.MethodPost, Path: "/responses", Kind: sdk.RouteTurn, Retryable: true},
		{Method: http.MethodGet, Path: "/responses", Kind: sdk.RouteLocal, RefuseUpgrade: true, Local: &noUpgrade},
		{Method: http.MethodPost, Path: "/responses/compact", Kind: sdk.RouteTurn, Retryable: true},
		{Method: http.MethodGet, Path: "/models", Kind: sdk.RouteAux, Retryable: true},
		// Tools of the native provider: they cost nothing of the windows and belong to the session.
		{Method: http.MethodPost, Path: "/alpha/search", Kind: sdk.RouteAux},
		{Method: http.MethodPost, Path: "/images/generations", Kind: sdk.RouteAux},
		{Method: http.MethodPost, Path: "/images/edits", Kind: sdk.RouteAux},
	}
}

// identity: the session is equal over turns, resume, compaction, sub-agents and review, and new on a fork. The title of a
// thread is asked for by a request with an id of its own, which is no session.
func identity() sdk.Identity {
	return sdk.Identity{
		Session: []sdk.Extractor{
			{Header: "session-id"},
			{BodyPointer: "/client_metadata/session_id"},
			{Header: turnMetadata, Inner: "/session_id"},
			{BodyPointer: "/client_metadata/" + turnMetadata, Inner: "/session_id"},
			{BodyPointer: "/prompt_cache_key"},
		},
		Parent:   []sdk.Extractor{{Header: "x-codex-parent-thread-id"}, {Header: turnMetadata, Inner: "/parent_thread_id"}},
		Subagent: []sdk.Extractor{{Header: "x-openai-subagent"}, {Header: turnMetadata, Inner: "/subagent_kind"}},
		Work: []sdk.Extractor{
			{Header: turnMetadata, Inner: "/thread_source"},
			{BodyPointer: "/client_metadata/" + turnMetadata, Inner: "/thread_source"},
		},
		PlacedWork: []string{"thread_title"},
		Model:      []sdk.Extractor{{BodyPointer: "/model"}},
		Streaming:  []sdk.Extractor{{BodyPointer: "/stream"}},
	}
}

func exposure() sdk.Exposure {
	return sdk.Exposure{
		ResponseHeaders: []string{"x-codex-*", "retry-after", "retry-after-ms", "content-type", "cf-mitigated"},
		UrgentHeaders:   []string{"x-codex-active-limit", "x-codex-rate-limit-reached-type"},
		ErrorBodyBytes:  16 << 10,
	}
}

func stream() sdk.StreamGrammar {
	return sdk.StreamGrammar{
		Framing:     sdk.FramingSSE,
		TypePointer: "/type",
		Preamble:    []string{"response.created", "response.in_progress", "response.queued", eventRateLimits},
		Inspected:   []string{"error", "response.failed"},
		Telemetry:   []string{eventRateLimits},
		Terminal:    []string{"response.completed", "response.incomplete", "response.failed", "error"},
	}
}

// headerPolicy: the routing override is about the client's own account, the turn state was minted by the account that
// answered last.
func headerPolicy() sdk.HeaderPolicy {
	return sdk.HeaderPolicy{
		Credentials:  []string{"authorization", "x-api-key", "cookie", "chatgpt-account-id", "x-openai-account-routing-override"},
		AccountBound: []string{"x-codex-turn-state"},
	}
}
