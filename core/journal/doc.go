// Package journal keeps an append-only log and snapshots and recovers them. It knows bytes, not meaning.
package journal
