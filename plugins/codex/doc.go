// Package codex is the adapter for Codex with ChatGPT plans and OpenAI API keys.
//
// It declares the wire of the official client, leases the access token that the client keeps in an account's CODEX_HOME,
// reads limits from x-codex-* headers, codex.rate_limits events and the client's own app-server, and shapes the answers
// that Codex understands when nobody can serve. It refreshes no login and writes nothing: refreshing is left to the
// official client.
package codex
