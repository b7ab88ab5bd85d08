// Package cli holds the commands, one file each. They talk to a running daemon through core/api, or work offline.
package cli
