// Package e2e drives the official Claude Code and Codex clients through the built daemon and its real plugin processes
// against a scripted upstream on loopback, with made-up credentials. Its tests have the build tag e2e; make e2e runs
// them.
package e2e
