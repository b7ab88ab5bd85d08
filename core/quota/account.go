// Package quota reads the clocks of accounts: windows, blockers, predictions, learned consumption, forecasts.
//
// It is pure: values in, values out. It imports no network, no operating system, no store and no clock; time comes in
// as an argument. It never sees a credential.
package quota

import "strings"

// AccountID names one of the user's accounts.
type AccountID struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
}

// String gives provider/name.
func (id AccountID) String() string { return id.Provider + "/" + id.Name }

// ParseAccountID is the inverse of String.
func ParseAccountID(s string) (AccountID, bool) {
	provider, name, ok := strings.Cut(s, "/")
	return AccountID{Provider: provider, Name: name}, ok && provider != "" && name != ""
}

// Compare orders by provider, then name.
func (id AccountID) Compare(other AccountID) int {
	if c := strings.Compare(id.Provider, other.Provider); c != 0 {
		return c
	}
	return strings.Compare(id.Name, other.Name)
}
