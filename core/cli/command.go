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
	"strings"
	"syscall"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
)

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
	// passes: what follows -- is another program's and comes as rest.
	passes bool
	// predict completes arguments; nil: nothing.
	predict complete.Predictor
	run     func(ctx context.Context, args, rest []string) error

	flags      *flag.FlagSet
	json       bool
	configPath string
	// unread is a configuration that was named and cannot be read, so that the daemon was looked for where it is by default.
	unread string
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

// Synopsis is the line in the list of commands.
func (c *command) Synopsis() string { return c.synopsis }

// Help is what -help prints.
func (c *command) Help() string {
	var b strings.Builder
	usage := "noria " + c.name + " [flags]"
	if c.args != "" {
		usage += " " + c.args
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
	return b.String()
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// AutocompleteArgs completes arguments in a shell.
func (c *command) AutocompleteArgs() complete.Predictor {
	if c.predict == nil {
		return complete.PredictNothing
	}
	return c.predict
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
		_, _ = fmt.Fprint(c.program.Stdout, c.Help())
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
			if c.passes && strings.HasPrefix(err.Error(), "flag provided but not defined") {
				return nil, usagef("%v; what is for the client itself goes after --", err)
			}
			return nil, usagef("%v", err)
		}
		if arguments = c.flags.Args(); len(arguments) > 0 {
			args, arguments = append(args, arguments[0]), arguments[1:]
		}
	}
	return args, nil
}

// groupCommand stands for commands that have its name in front, and does nothing by itself.
func (p *Program) groupCommand(name, synopsis string, members ...string) *command {
	c := p.newCommand(name, "", synopsis)
	c.about = synopsis + "."
	for _, member := range members {
		c.examples = append(c.examples, "noria "+member)
	}
	c.run = func(context.Context, []string, []string) error {
		return usagef("%s wants one of its commands: %s", name, strings.Join(members, ", "))
	}
	return c
}

// client of the daemon with this configuration. The configuration may have errors: a daemon that runs can still be asked.
func (c *command) client() *api.Client {
	file, _ := config.Parse(c.configPath)
	if named := c.configPath != "" || os.Getenv("NORIA_CONFIG") != ""; named && !file.WasRead() {
		c.unread = file.Path
	}
	return api.NewClient(file.ControlSocket())
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

func (c *command) printJSON(value any) error {
	encoder := json.NewEncoder(c.program.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// printJSONLine prints one value on one line, for streams.
func (c *command) printJSONLine(value any) error {
	encoder := json.NewEncoder(c.program.Stdout)
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
