package config

// Change is one difference between two configurations.
type Change struct {
	// What changed, such as telemetry.refresh, provider.claude, or provider.claude.account.work.
	What string `json:"what"`
	// How is added, removed or changed.
	How ChangeKind `json:"how"`
	// Restart: it takes effect only when the daemon is started anew.
	Restart bool `json:"restart,omitempty"`
}

// ChangeKind is a way to differ.
type ChangeKind string

// Ways to differ.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)
