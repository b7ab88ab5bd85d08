package plugintest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/noria-dev/noria/sdk"
)

// T is what the suite needs of a test; *testing.T has it.
type T interface {
	Name() string
	Context() context.Context
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// variable turns a test binary into the adapter: its value is 1, and what follows the test flags are the arguments of
// the adapter.
const variable = "NORIA_PLUGINTEST_ADAPTER"

// Run runs the suite against the adapter of this test binary, in processes of its own: the binary is started again, for
// the same test, and becomes the adapter when it arrives here. Nothing before Run in the test may print to standard
// output or depend on its environment.
func Run(t T, newAdapter func() sdk.Adapter, fixtures Fixtures) {
	t.Helper()
	if os.Getenv(variable) == "1" {
		os.Args = append(os.Args[:1], adapterArguments(os.Args)...)
		sdk.Serve(newAdapter)
	}
	again := func(args ...string) *exec.Cmd {
		return exec.Command(os.Args[0], append([]string{"-test.run=" + only(t.Name()), "--"}, args...)...)
	}
	if fixtures.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatalf("find fixtures: %v", err)
		}
		fixtures.Dir = dir
	}
	// Under the race detector a process waits a second before it ends, and the suite starts several.
	environment := map[string]string{variable: "1", "GORACE": "atexit_sleep_ms=0"}
	for name, value := range fixtures.Environment {
		environment[name] = value
	}
	fixtures.Environment = environment
	report, err := runSuite(t.Context(), again, fixtures)
	if err != nil {
		t.Fatalf("run the suite: %v", err)
	}
	for _, check := range report.Checks {
		for _, problem := range check.Problems {
			t.Errorf("%s: %s\n\tfix: %s", check.Name, problem.What, problem.Fix)
		}
	}
}

// only makes a pattern for -test.run that one test matches, subtests included.
func only(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

func adapterArguments(args []string) []string {
	for i, arg := range args {
		if arg == "--" {
			return args[i+1:]
		}
	}
	return nil
}
