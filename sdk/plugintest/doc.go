// Package plugintest is the conformance suite of the adapter protocol.
//
// It takes an adapter as a daemon would: as a process behind the real handshake, with mutual TLS, the limits and the
// deadlines of the protocol. What it expects of a provider stands in [Fixtures], usually a JSON file beside the adapter,
// so that an adapter in any language is held to the same rules. Adapters written in Go run it from a test:
//
//	func TestConformance(t *testing.T) {
//		plugintest.Run(t, New, plugintest.MustRead("testdata/fixtures.json"))
//	}
//
// and "noria plugins test PATH" runs it, through [RunBinary], against an executable. Both are the same checks. The
// [Report] says of each problem what to do about it.
//
// The suite starts processes and speaks to them over sockets in a private temporary directory; it uses no network. The
// adapter sees PATH, LANG, an empty HOME and what [Fixtures.Environment] sets.
package plugintest
