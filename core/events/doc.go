// Package events keeps the bounded list of events, the metrics and the redaction.
package events
