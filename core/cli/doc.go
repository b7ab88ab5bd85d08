// Package cli holds the commands, one file each. They talk to a running daemon through core/api, or work offline.
//
// A command is a value of type command: its flags, its help, and a function that returns an error. What an error means for
// the exit code is decided in exit.go alone, and everything that came from outside is printed through core/internal/printable.
package cli
