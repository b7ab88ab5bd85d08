// Package quota reads the clocks of accounts: windows, blockers, predictions, learned consumption, forecasts.
//
// It is pure: values in, values out. It imports no network, no operating system, no store and no clock; time comes in
// as an argument. It never sees a credential.
//
// # Nothing counts twice
//
// An observation of a window is stamped with the requests that it is known to include: those that had completed when its
// probe, or the request whose answer carries it, was sent, less what is younger than the provider's usage lag. What
// completed since is added at its learned cost, and what is in flight is reserved. So a request is in one place: in
// flight, then completed since, then inside the observation.
//
// # Unknown is unknown
//
// A window that was never read is neither empty nor full. A reset that the provider stated and that has passed empties a
// window; a prediction that has passed proves nothing. An estimate is never shown as an observation.
package quota
