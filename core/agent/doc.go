// Package agent builds the daemon from its configuration and runs it: start, signals, reload, drain. It is the one place where
// the parts meet.
package agent
