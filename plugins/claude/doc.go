// Package claude is the adapter for Claude Code subscriptions and Anthropic API keys.
//
// It declares the wire of the official client, leases the access token that the client keeps in an account's
// configuration directory, reads the anthropic-ratelimit-unified-* headers of real answers, and shapes the answers that
// Claude Code understands when nobody can serve. It refreshes no login and writes nothing: refreshing is left to the
// official client.
package claude
