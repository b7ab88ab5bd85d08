// Package sdk is what an author of a provider adapter imports, together with sdk/plugintest, and nothing else.
//
// An adapter is one type that implements [Adapter]. It states facts about its provider: the wire it speaks, the
// credential headers of an account, what a failed response means, which quota windows an answer shows. It never chooses
// an account, never sees a prompt and is on no healthy request's path. [Serve] turns it into an executable that a Noria
// daemon runs; the SDK takes care of gRPC, the handshake, health, standard output, panics, signals and the death of the
// parent.
package sdk
