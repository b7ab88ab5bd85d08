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
