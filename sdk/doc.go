// Package sdk is what an author of a provider adapter imports, together with sdk/plugintest, and nothing else.
//
// An adapter is one type that implements [Adapter], and a main that calls [Serve]. It states facts about its provider:
// the wire it speaks ([Profile]), the credential headers of an account ([Lease]), what a failed response means
// ([Verdict]), which quota windows an answer shows ([Window]). It never chooses an account, never sees a prompt and is on
// no healthy request's path: a Noria daemon works from the profile and from leases that it keeps, and asks only about
// failures and, after the fact, about telemetry.
//
// # From an executable to a served request
//
// Its main is
//
//	func main() { sdk.Serve(func() sdk.Adapter { return New() }) }
//
// and noria.hcl names what was built of it ("noria plugins pin acme" prints the digest) and the user's accounts:
//
//	plugin "acme" {
//		path   = "plugins/noria-provider-acme"
//		sha256 = "…"
//	}
//	provider "acme" {
//		plugin = "acme"
//		account "a" {
//			token_file = "~/.acme/a"
//		}
//	}
//
// Clients reach it below /acme/ of the daemon's address. The package example is a whole adapter; examples/provider-acme in
// Noria's repository leads from an empty folder to an answer.
//
// # What the SDK does
//
// Serve turns the adapter into an executable that a daemon runs: gRPC, the handshake with mutual TLS, health, message
// limits, schemas from struct tags, configurations that are applied as a whole or not at all, panics, signals, draining,
// and the death of the daemon. Optional interfaces such as [QuotaReader] or [Launcher] become services when the adapter
// has them.
//
// # Configuration
//
// The structs in [Descriptor] are the schema of the provider block and of an account block in noria.hcl:
//
//	type account struct {
//		TokenFile sdk.Path      `hcl:"token_file,required" doc:"File that holds the token."`
//		Patience  time.Duration `hcl:"patience" default:"30s" doc:"How long a login may take."`
//		PIN       sdk.Secret    `hcl:"pin" doc:"Second factor."`
//	}
//
// The tag hcl names the attribute, with the options required and sensitive; default is the value as a user would write it
// (a list or a map as JSON); doc is shown to users. Types are string, bool, int, int64, float64, [time.Duration], [Path],
// [Secret], []string and map[string]string. Values arrive decoded by [Config.Decode], [Account.Decode] and
// [Account.DecodeProvider]; what does not fit the schema never arrives.
//
// # Figures and credentials
//
// Figures come from outside. [ParsePercent], [ParseFraction], [ParseUnixSeconds], [ResetWithin] and [OneValue] read them
// strictly and leave unknown what cannot be read: unknown is neither 0 % nor 100 %. [WindowOf] gives a window its
// meaning from its length. [VerdictByStatus] reads failures about which a provider says no more than a status.
//
// [Credentials] reads configured credentials, [ReadJSONFile] the files of official clients, [RunClient] and [StartRPC] run
// those clients within bounds, and [ClientTurns] keeps two of them from one login. [Lease], [Credential] and [Secret]
// print as [redacted]; an adapter must not put their content into errors, logs or anything but a lease. The SDK bounds
// the text of errors and logs of a panic nothing but its class and place.
//
// # Tests, logs and debuggers
//
// Package sdk/plugintest holds an adapter to all of this, in a test of yours or by "noria plugins test". [NewConfig] and
// [NewAccount] make what a daemon would hand over, for tests of single methods.
//
// What an adapter writes to standard output or standard error goes to the daemon's log as plugin.NAME, one entry a line,
// at most a hundred lines a second; a line in the JSON form of hclog keeps its level and its pairs. "noria plugins info
// NAME" shows the last lines, and "noria plugins list" says why an adapter does not run.
//
// With "dev = true" in its plugin block an executable runs without a digest, and a reload takes a rebuilt one. Started
// with -debug, under a debugger or by hand, it prints one line
//
//	NORIA_REATTACH='{"name":"acme",…}'
//
// and a daemon that has this variable in its environment uses that process for the plugin acme, which needs dev = true,
// and leaves it running when the daemon ends. Panics are still caught, deadlines still hold: stop at a breakpoint for
// longer, and the daemon finds the adapter away for that call.
package sdk
