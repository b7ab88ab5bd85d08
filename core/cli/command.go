package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/internal/nearest"
)

// defaultLimit of lists.
const defaultLimit = 100

// command is one command. It is made anew for every use.
type command struct {
	program *Program
	// name as it is typed after noria.
	name     string
	args     string // for the usage line, such as SESSION
	synopsis string
	about    string
	// examples are command lines without the prompt.
	examples []string
	// group: it stands for the commands that have its name in front, and does nothing by itself.
	group bool
	// passes: what follows -- is another program's and comes as rest.
	passes bool
	// predict completes arguments; nil: nothing.
	predict complete.Predictor
	run     func(ctx context.Context, args, rest []string) error

	flags      *flag.FlagSet
	json       bool
	configPath string
}

// newCommand has the flags that every command has.
func (p *Program) newCommand(name, args, synopsis string) *command {
	c := &command{program: p, name: name, args: args, synopsis: synopsis, flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	c.flags.SetOutput(io.Discard)
	c.flags.StringVar(&c.configPath, "config", "", "configuration `FILE` (default $NORIA_CONFIG, else noria.hcl in the user's configuration directory)")
	return c
}

// withJSON adds -json.
func (c *command) withJSON() *command {
	c.flags.BoolVar(&c.json, "json", false, "print JSON")
	return c
}

// limitFlag adds -limit for a list of such things.
func (c *command) limitFlag(things string) *int {
	limit := defaultLimit
	c.flags.Func("limit", fmt.Sprintf("at most `N` %s (default %d)", things, defaultLimit), func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil {
			return errors.New("it wants a whole number")
		}
		limit = n
		return nil
	})
	return &limit
}

// Synopsis is the line in the list of commands.
func (c *command) Synopsis() string { return c.synopsis }

// Help is what -help prints.
func (c *command) Help() string {
	var b strings.Builder
	usage := "noria " + c.name + " [flags]"
	if c.args != "" {
		usage += " " + c.args
	}
	if c.group {
		usage = "noria " + c.name + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, "Usage: %s\n\n%s\n", usage, indented(c.about))
	if len(c.examples) > 0 {
		b.WriteString("\nExamples:\n\n")
		for _, example := range c.examples {
			fmt.Fprintf(&b, "  $ %s\n", example)
		}
	}
	b.WriteString("\nFlags:\n\n")
	c.flags.VisitAll(func(f *flag.Flag) {
		value, doc := flag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(&b, "  -%-24s %s\n", f.Name+value, doc)
	})
	return strings.TrimSuffix(b.String(), "\n") // the library ends the line
}

// HelpTemplate puts the commands of a group below its help.
func (c *command) HelpTemplate() string {
	return `{{.Help}}{{if .Subcommands}}

Commands:
{{range .Subcommands}}
  {{.NameAligned}}  {{.Synopsis}}{{end}}{{end}}`
}

func indented(text string) string {
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
	return strings.ReplaceAll(indented, "\n  \n", "\n\n")
}

// AutocompleteArgs completes arguments in a shell.
func (c *command) AutocompleteArgs() complete.Predictor {
	if c.predict == nil {
		return complete.PredictNothing
	}
	return c.predict
}

// completionTime is how long a shell may wait for names.
const completionTime = 500 * time.Millisecond

// predict completes the names of what a daemon lists.
func predict[T any](list func(context.Context) ([]T, error), name func(T) string) complete.Predictor {
	return complete.PredictFunc(func(complete.Args) []string {
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		found, err := list(ctx)
		if err != nil {
			return nil
		}
		names := make([]string, len(found))
		for i, thing := range found {
			names[i] = text(name(thing))
		}
		return names
	})
}

// AutocompleteFlags completes flags in a shell.
func (c *command) AutocompleteFlags() complete.Flags {
	flags := complete.Flags{}
	c.flags.VisitAll(func(f *flag.Flag) {
		switch {
		case f.Name == "config":
			flags["-"+f.Name] = complete.PredictFiles("*.hcl")
		case isSwitch(f):
			flags["-"+f.Name] = complete.PredictNothing
		default:
			flags["-"+f.Name] = complete.PredictAnything
		}
	})
	return flags
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// Run parses arguments, runs the command and returns its exit code.
func (c *command) Run(arguments []string) int {
	own, rest := arguments, []string(nil)
	if i := slices.Index(arguments, "--"); i >= 0 {
		own, rest = arguments[:i], arguments[i+1:]
	}
	args, err := c.parse(own)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintln(c.program.Stdout, c.Help())
		return exitDone
	case err != nil:
		return c.report(err)
	}
	if !c.passes {
		args, rest = append(args, rest...), nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks; the next one ends the process as if nobody listened.
	defer context.AfterFunc(ctx, stop)()
	return c.report(c.run(ctx, args, rest))
}

// parse takes flags wherever they stand among the arguments.
func (c *command) parse(arguments []string) (args []string, err error) {
	for len(arguments) > 0 {
		if err := c.flags.Parse(arguments); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, c.flagError(err)
		}
		if arguments = c.flags.Args(); len(arguments) > 0 {
			args, arguments = append(args, arguments[0]), arguments[1:]
		}
	}
	return args, nil
}

// flagError says which flag was meant.
func (c *command) flagError(err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	switch {
	case unknown && c.passes:
		return usagef("there is no flag -%s; put the arguments of the client itself after --", name)
	case !unknown:
		return usagef("%v", err)
	}
	var known []string
	c.flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if best := nearest.Word(name, known); best != "" {
		return usagef("there is no flag -%s; did you mean -%s?", name, best)
	}
	return usagef("there is no flag -%s", name)
}

// groupCommand stands for its members.
func (p *Program) groupCommand(name, synopsis string, members ...string) *command {
	c := p.newCommand(name, "", synopsis)
	c.group, c.about = true, synopsis+"."
	for _, member := range members {
		c.examples = append(c.examples, "noria "+member)
	}
	c.run = func(context.Context, []string, []string) error {
		return usagef("%s wants one of its commands: %s", name, strings.Join(members, ", "))
	}
	return c
}

// client of the daemon with this configuration. The configuration may have errors: a daemon that runs can still be asked. One
// that was named and cannot be read names no daemon: the default one is another.
func (c *command) client() *api.Client {
	file, found := config.Parse(c.configPath)
	if c.namesNone(file) {
		return api.Faulty(found)
	}
	return api.NewClient(file.ControlSocket())
}

// namesNone reports whether a configuration was named that cannot be read.
func (c *command) namesNone(file *config.File) bool {
	return (c.configPath != "" || os.Getenv("NORIA_CONFIG") != "") && !file.WasRead()
}

// exactly wants n arguments.
func (c *command) exactly(n int, args []string) error {
	switch {
	case len(args) < n:
		return usagef("%s wants %s", c.name, c.args)
	case len(args) > n:
		return usagef("unexpected argument %q", args[n])
	}
	return nil
}

func (c *command) printJSON(value any) error { return c.encode(value, "  ") }

// printJSONLine prints one value on one line, for streams.
func (c *command) printJSONLine(value any) error { return c.encode(value, "") }

func (c *command) encode(value any, indent string) error {
	encoder := json.NewEncoder(c.program.Stdout)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

func (c *command) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(c.program.Stdout, format, args...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
