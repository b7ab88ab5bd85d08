package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
)

// revokeTime is how long the end of a run may wait for the daemon.
const revokeTime = 3 * time.Second

func (p *Program) runCommand() *command {
	c := p.newCommand("run", "PROVIDER -- ARGUMENTS", "Start the official client behind the daemon")
	c.about = `
Starts the official client of a provider (claude, codex, or a third party's) with its traffic going
through the daemon, for this invocation only: nothing is written to the client's settings. The client
gets a key of its own, which ends with it. What follows -- is passed on as it is. The exit code is the
client's.`
	c.examples = []string{"noria run claude", "noria run codex -- exec \"explain this repository\"", "noria run claude -- --resume"}
	c.passes = true
	c.predict = complete.PredictSet("claude", "codex")
	native := c.flags.Bool("native", false, "keep the client's own provider, to resume sessions from before Noria (codex); needs listen { auth = \"none\" }")
	c.run = func(ctx context.Context, args, rest []string) error {
		if len(args) > 1 {
			return usagef("unexpected argument %q; put the arguments of the client itself after --", args[1])
		}
		if err := c.exactly(1, args); err != nil {
			return err
		}
		return c.runClient(ctx, args[0], *native, rest)
	}
	return c
}

// runClient makes a key for the run, starts the client, and revokes the key when the client has ended.
func (c *command) runClient(ctx context.Context, provider string, native bool, arguments []string) error {
	client := c.client()
	flags, err := client.LaunchFlags(ctx, provider)
	if err != nil {
		return err
	}
	seen, rest := splitFlags(arguments, flags.Flags)
	plan, err := client.Launch(ctx, api.LaunchRequest{Provider: provider, Native: native, Seen: seen})
	if err != nil {
		return err
	}
	run, err := client.CreateRunKey(ctx, api.RunKeyRequest{Provider: provider})
	if err != nil {
		return err
	}
	defer c.revoke(client, run.ID)
	invocation, err := fill(plan, run, rest, os.Environ())
	if err != nil {
		return err
	}
	code, err := c.execute(invocation)
	if err != nil {
		return err
	}
	return &exitError{code: code}
}

func (c *command) revoke(client *api.Client, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), revokeTime)
	defer cancel()
	if err := client.RevokeRunKey(ctx, id); err != nil {
		c.complain("the key of this run was not revoked: "+err.Error(), "it opens nothing but this daemon's proxy, and ends there with this process")
	}
}

// splitFlags takes the named flags with their values out of a client's arguments, up to a --.
func splitFlags(arguments, named []string) (seen []api.FlagValue, rest []string) {
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		if argument == "--" {
			return seen, append(rest, arguments[i:]...)
		}
		name, value, joined := strings.Cut(argument, "=")
		switch {
		case !slices.Contains(named, name):
			rest = append(rest, argument)
		case joined:
			seen = append(seen, api.FlagValue{Flag: name, Value: value})
		case i+1 < len(arguments):
			i++
			seen = append(seen, api.FlagValue{Flag: name, Value: arguments[i]})
		default:
			// Without its value it is the client's own error to report.
			rest = append(rest, argument)
		}
	}
	return seen, rest
}

// invocation is a command line, ready to start.
type invocation struct {
	argv, environment []string
}

var errUnusablePlan = errors.New("the adapter's command line cannot be used")

// fill puts the user's arguments and the run's key into the adapter's plan. The key goes into the environment only: the
// arguments of a process can be read by others.
func fill(plan api.LaunchPlan, run api.RunKey, arguments, inherited []string) (invocation, error) {
	var argv []string
	spliced := false
	values := strings.NewReplacer("{{base_url}}", run.BaseURL, "{{no_proxy}}", withLoopback(lookup(inherited, "NO_PROXY")))
	for _, element := range plan.Argv {
		switch {
		case element == "{{args}}" && !spliced:
			argv, spliced = append(argv, arguments...), true
		case strings.Contains(element, "{{key}}"), element == "{{args}}":
			return invocation{}, fmt.Errorf("%w: it has a key or arguments where they do not belong", errUnusablePlan)
		default:
			argv = append(argv, values.Replace(element))
		}
	}
	if len(plan.Argv) == 0 || plan.Argv[0] == "{{args}}" || !spliced {
		return invocation{}, fmt.Errorf("%w: it has no program, or no place for arguments", errUnusablePlan)
	}
	values = strings.NewReplacer("{{base_url}}", run.BaseURL, "{{no_proxy}}", withLoopback(lookup(inherited, "NO_PROXY")), "{{key}}", run.Key)
	return invocation{argv: argv, environment: environmentOf(inherited, plan.Environment, plan.Unset, values.Replace)}, nil
}

// environmentOf is what a client inherits, with what its adapter sets and without what it takes away.
func environmentOf(inherited []string, set map[string]string, unset []string, fill func(string) string) []string {
	environment := slices.DeleteFunc(slices.Clone(inherited), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, replaced := set[name]
		return replaced || slices.Contains(unset, name)
	})
	for name, value := range set {
		environment = append(environment, name+"="+fill(value))
	}
	slices.Sort(environment)
	return environment
}

func lookup(environment []string, name string) string {
	for _, variable := range []string{name, strings.ToLower(name)} {
		for _, entry := range environment {
			if value, ok := strings.CutPrefix(entry, variable+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}

// withLoopback adds loopback to a NO_PROXY list.
func withLoopback(list string) string {
	entries := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
		if !slices.Contains(entries, host) {
			entries = append(entries, host)
		}
	}
	return strings.Join(entries, ",")
}

// execute runs the client with this process's terminal and returns its exit code.
func (c *command) execute(run invocation) (int, error) {
	path, err := exec.LookPath(run.argv[0])
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", run.argv[0], exec.ErrNotFound)
	}
	child := &exec.Cmd{
		Path: path, Args: run.argv, Env: run.environment, Stdin: c.program.Stdin, Stdout: c.program.Stdout, Stderr: c.program.Stderr,
	}
	// From here on signals are the client's to answer, so that the key is revoked whatever it does.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", run.argv[0], err)
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		c.forward(signals, child.Process, ended)
	}()
	err = child.Wait()
	close(ended)
	<-forwarded
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for %s: %w", run.argv[0], err)
	}
	return exitCode(child.ProcessState), nil
}

// forward hands signals on until the client has ended. A terminal sends those of its keys to the whole foreground group,
// so the client has them already.
func (c *command) forward(signals <-chan os.Signal, client *os.Process, ended <-chan struct{}) {
	interactive := isTerminal(c.program.Stdin)
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			if interactive && (s == syscall.SIGINT || s == syscall.SIGQUIT) {
				continue
			}
			// It may have ended just now.
			_ = client.Signal(s)
		}
	}
}

// signalled and the number of a signal are the exit code of what that signal ended.
const signalled = 128

// exitCode as a shell would say it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return state.ExitCode()
}
