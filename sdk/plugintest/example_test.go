package plugintest_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/noria-dev/noria/sdk/plugintest"
)

// A report says of each problem what to do about it.
func ExampleReport_WriteText() {
	report := plugintest.Report{Name: "acme", Version: "1.0.0", Checks: []plugintest.Check{
		{Name: "leases are usable, and refusals are typed"},
		{Name: "every outcome is as expected", Problems: []plugintest.Problem{{
			What: `case "no money": outcome is "unknown_error" instead of "not_entitled"`, Fix: "correct the adapter, or the case",
		}}},
	}}
	_ = report.WriteText(os.Stdout)
	// Output:
	// acme 1.0.0
	// ok    leases are usable, and refusals are typed
	// FAIL  every outcome is as expected
	//       case "no money": outcome is "unknown_error" instead of "not_entitled"
	//         fix: correct the adapter, or the case
	// 2 checks, 1 failed
}

// A misspelt field would test nothing, so it is an error.
func ExampleRead() {
	dir, err := os.MkdirTemp("", "acme-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "fixtures.json")
	for _, text := range []string{
		`{"accounts": [{"name": "a"}], "outcomes": [{"name": "spent", "status": 429, "want": {"outcome": "quota_exhausted", "scope": "account"}}]}`,
		`{"outcomes": [{"name": "spent", "stauts": 429}]}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		fixtures, err := plugintest.Read(file)
		fmt.Println(len(fixtures.Outcomes), err != nil)
	}
	// Output:
	// 1 false
	// 0 true
}
