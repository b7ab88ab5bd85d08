// Package events keeps what the daemon tells about itself: the bounded list of events, the metrics and the redaction of logs.
//
// An event has explicit fields and no free text. Its words (component, operation, state, outcome, reason) come from the
// lists in this package, but for the code that an adapter gives as the reason of its verdict; that and the few names that
// come from outside (provider, account, model) are replaced by [Redacted] when they could be a secret or could not be
// printed. There is no field for prompts, responses, headers, environments or credentials, and none is to be added. That
// is the first net against leaks; [Redactor], which log lines pass through, is the second.
//
// The package knows no other of the host: who has something to tell converts it to an [Event].
package events
