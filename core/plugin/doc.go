// Package plugin runs adapter processes: catalog, verification, runner, supervision, typed client. Answers of an adapter
// are data from outside and are checked here. Only this package and the SDK import go-plugin.
//
// A [Catalog] knows executables without running them as adapters: where they are, whether they may be trusted, what they
// say of themselves. It needs no daemon. A [Host] keeps one supervised adapter process per [Spec] and gives one [Client]
// per provider, which outlives restarts and reloads of the process behind it:
//
//	host, err := plugin.New(plugin.Options{...})
//	results := host.Apply(ctx, specs)          // start, swap without a gap, stop
//	client, err := host.Client("claude")
//	lease, err := client.Lease(ctx, "work")    // from the cache; no call on a hit
//	host.Close(ctx)
//
// What an adapter reports comes through [Hooks]. What the host promises of a process is in the design of the adapter
// protocol; the table of traps there is the list of tests here.
package plugin
