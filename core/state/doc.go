// Package state holds accounts, bindings, blockers, windows, learned sums and reservations in go-memdb over a journal. It is the
// only writer of bindings and reservations.
package state
