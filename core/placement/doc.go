// Package placement decides which account serves: keep, follow, sibling, filter, class, score, select.
//
// It is pure: a read snapshot of accounts, windows, blockers, estimators and reservations plus the time go in, a decision
// with its full reasoning comes out. core/state wraps it in the one write transaction that also reserves.
//
// # Steps
//
//   - Keep: a bound account that is enabled, matches, has no applicable blocker and was not tried by this request is used
//     before any score. A cooldown sends the request elsewhere for this once, if somebody else can serve.
//   - Follow: another request of the session is being placed right now; it goes there.
//   - Sibling: the session lives on an account for another model that can serve this one.
//   - Filter: enabled, eligible for the model, not blocked for it, not tried, not in a cooldown.
//   - Class: accounts whose declared windows are all in a known state go before all others. Without any, one cautious
//     attempt: fewest unconfirmed attempts, then room on the last evidence, then no evidence, then no room.
//   - Score, greatest first; ties go to fewer live sessions and requests, then to the least recently placed, then to
//     configuration order.
//
// # Score
//
// For an account, a model and every applicable window of it:
//
//	κ         percent of the window per completed request       learned, see package quota
//	h         hours to its reset, at least one minute
//	Used      percent used: the last observation, and κ for each request completed since
//	Reserved  κ for each request in flight
//	Committed κ · cadence · F(h): what the sessions that live there will still ask for
//	New       κ · ν · F(h): what the session that is being placed will ask for
//	F(h)      L · (1 − e^(−h/L)): expected active hours of a session within h
//
//	rate = (100 − Used − Reserved − Committed − φ·New) / (κ·h)     requests an hour until the reset
//	sust = 100 / (κ·D)                                             requests an hour over its length D
//
// The score is the slack: the least rate over the least sust. 1 is the straight line from full to empty over the tightest
// window; more is allowance that expires unless it is used sooner; below 0 the session is not expected to fit.
package placement
