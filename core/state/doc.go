// Package state holds accounts, bindings, blockers, windows, learned sums and reservations, and is the only writer of
// bindings and reservations.
//
// # Facts and counters
//
// Every durable fact is an entry: whole rows with their own times and ids, appended to a [Log] and applied to one go-memdb
// in one write transaction. Applying reads no clock and no chance, and doing it twice changes nothing, so any snapshot
// followed by what the log holds after it gives the same state. Readings of quota and what is learned change with every
// request; they live in memory beside the store, under the same lock, and become entries at most once a minute per account
// and per session. Work in flight is never durable: it dies with the process.
//
// # Time
//
// State has no clock. Times come with the calls, and order comes from sequences. A wall clock that goes back moves old
// evidence back with it; one that leaps by more than a year is believed only once it has run steadily for some minutes.
package state
