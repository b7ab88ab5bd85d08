package sdk

import (
	"fmt"
	"path/filepath"
)

// SharedHomes finds accounts that have the folder of another: it holds one login, whose allowance would be counted twice.
// home gives an account's folder, which may be empty; attribute is what it is called in the account block. It reads links,
// and nothing else, of the file system.
func SharedHomes(accounts []Account, attribute string, home func(Account) Path) []Diagnostic {
	var found []Diagnostic
	owners := map[string]string{}
	for _, account := range accounts {
		folder := string(home(account))
		if folder == "" {
			continue
		}
		folder = filepath.Clean(folder)
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
		owner, taken := owners[folder]
		if !taken {
			owners[folder] = account.Name
			continue
		}
		found = append(found, Diagnostic{
			Severity: SeverityError, Account: account.Name, Attribute: attribute,
			Summary: fmt.Sprintf("Account has the login of %q", owner),
			Detail:  "One login is one account: give this one a folder of its own and log in there, or remove it.",
		})
	}
	return found
}
