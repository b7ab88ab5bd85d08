// Package simulation drives the daemon's own placement and state from a trace. There is no other clock than the trace's, so
// a trace gives the same decisions every time and everywhere.
//
// # Traces
//
// A trace is JSON lines; lines that begin with # are comments. Every event has its time t in milliseconds.
//
//	hello      v (1), models
//	account    account, enabled, models, windows: [{id, dur_ms, model?}]; again later to disable, enable, or note a new login
//	telemetry  account, taken, src (poll, header), windows: [{id, used?, reset?, awaiting?}]; a window that is not listed was
//	           not reported, a reset that is absent is not known
//	arrival    req, session, model: answered by a decision
//	accepted   req
//	completed  req
//	aborted    req
//	rejected   req, class (quota, auth, throttle), window?, reset?: answered by a decision
//	restart    the process dies and comes back: what is persisted is all that is kept
//	end
//
// Decisions:
//
//	{"ev":"decision","req":7,"d":"place","account":"A","how":"bound|known|cautious","score":1.25}
//	{"ev":"decision","req":7,"d":"unavailable","forecast":{"at":91800000,"kind":"exact|no_later_than|unknown"}}
//
// A trace may hold the decisions that are expected; a replay compares its own with them.
package simulation
