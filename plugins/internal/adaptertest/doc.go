// Package adaptertest is what the tests of the bundled adapters share: recorded requests and answers read from testdata,
// accounts as the host makes them, and checks of verdicts, refusals, findings and sign-ins.
package adaptertest
