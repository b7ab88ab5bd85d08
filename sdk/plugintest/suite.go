package plugintest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Deadlines of the protocol.
const (
	classifyTime  = time.Second
	observeTime   = 2 * time.Second
	leaseTime     = 5 * time.Second
	readQuotaTime = 15 * time.Second
	otherTime     = 10 * time.Second
)

// RunBinary runs the suite against an executable, in its directory, with the fixtures of a JSON file. The error says why the suite could
// not run; what it found is in the report. When ctx ends, the suite stops at the check that it is in.
func RunBinary(ctx context.Context, path, fixturesFile string) (Report, error) {
	fixtures, err := Read(fixturesFile)
	if err != nil {
		return Report{}, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return Report{}, fmt.Errorf("find adapter: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return Report{}, fmt.Errorf("find adapter: %w", err)
	}
	return runSuite(ctx, func(args ...string) *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Dir = filepath.Dir(path)
		return cmd
	}, fixtures)
}

// RunCommand runs the suite against the adapter that a command line starts, such as that of an interpreter and a script.
// What the suite passes to the adapter comes after it.
func RunCommand(ctx context.Context, argv []string, fixtures Fixtures) (Report, error) {
	return runSuite(ctx, func(args ...string) *exec.Cmd {
		return exec.Command(argv[0], append(slices.Clone(argv[1:]), args...)...)
	}, fixtures)
}

// suite is one run.
type suite struct {
	command  command
	fixtures Fixtures
	report   Report
	output   *output
	home     string
	secrets  []string
	said     said

	described  *pluginv1.DescribeResponse
	plugin     pluginv1.PluginClient
	provider   providerv1.ProviderClient
	running    *process
	config     *pluginv1.Config
	generation atomic.Uint64
	profile    *providerv1.Profile
}

func runSuite(ctx context.Context, command command, fixtures Fixtures) (Report, error) {
	home, err := os.MkdirTemp("", "noria-home-")
	if err != nil {
		return Report{}, fmt.Errorf("make a home: %w", err)
	}
	defer os.RemoveAll(home)
	s := &suite{command: command, fixtures: fixtures, output: &output{}, home: home, secrets: fixtures.secrets(),
		said: said{errors: map[string]struct{}{}, leaked: map[string]struct{}{}}}
	defer func() {
		if s.running != nil {
			s.running.kill()
		}
	}()
	for _, check := range s.checks() {
		if err := ctx.Err(); err != nil {
			return s.report, err
		}
		if !s.run(ctx, check) && check.vital {
			break
		}
	}
	return s.report, nil
}

// check is one rule. When a vital one fails, those after it have nothing to stand on.
type check struct {
	name  string
	vital bool
	run   func(context.Context, *findings)
}

func (s *suite) checks() []check {
	return []check{
		{"fixtures cover what every provider has", false, s.checkFixtures},
		{"describe answers without a handshake, twice the same", true, s.checkDescribe},
		{"started by hand, it says so and ends", false, s.checkByHand},
		{"it starts and answers behind the handshake", true, s.checkStart},
		{"nothing is served before a configuration", false, s.checkUnconfigured},
		{"a good configuration is applied", true, s.checkConfigure},
		{"a bad configuration is refused and the last one stays", false, s.checkBadConfig},
		{"the profile is complete", true, s.checkProfile},
		{"no session is invented", false, s.checkSessions},
		{"an unknown account gets nothing", false, s.checkUnknownAccount},
		{"leases are usable, and refusals are typed", false, s.checkLeases},
		{"every outcome is as expected", false, s.checkOutcomes},
		{"telemetry shows the windows, and unknown carries no percentage", false, s.checkTelemetry},
		{"optional services answer within their deadlines", false, s.checkOptional},
		{"hostile input changes nothing and invents nothing", false, s.checkHostile},
		{"calls at the same time do not disturb each other", false, s.checkConcurrent},
		{"a configuration may come while calls run", false, s.checkReconfigure},
		{"a call that is given up harms no other", false, s.checkGivenUp},
		{"it drains", false, s.checkDrain},
		{"it ends on SIGTERM, and with the daemon", false, s.checkEnd},
		{"no secret is in an answer, an error or the output", false, s.checkSecrets},
	}
}

// run runs one check and reports whether it found nothing.
func (s *suite) run(ctx context.Context, c check) bool {
	result := Check{Name: c.name}
	c.run(ctx, &findings{check: &result, redact: s.redact, seen: map[Problem]bool{}})
	s.report.Checks = append(s.report.Checks, result)
	return len(result.Problems) == 0
}

func (f Fixtures) path(own string) string {
	if filepath.IsAbs(own) {
		return own
	}
	return filepath.Join(f.Dir, own)
}

// environment is what the adapter sees: an empty home of its own, and what the fixtures add.
func (s *suite) environment(temp string) []string {
	environment := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=" + temp, "LANG=C.UTF-8"}
	for name, value := range s.fixtures.Environment {
		environment = append(environment, name+"="+value)
	}
	return environment
}
