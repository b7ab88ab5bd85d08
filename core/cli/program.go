package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/cli"

	"github.com/noria-dev/noria/core/internal/nearest"
	"github.com/noria-dev/noria/core/internal/printable"
)

// Program is noria as the commands see it. main fills it.
type Program struct {
	Version        string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Now            func() time.Time
	// Location for times of day.
	Location *time.Location
}

// commands are all there are.
func (p *Program) commands() map[string]*command {
	all := map[string]*command{}
	for _, c := range slices.Concat(
		[]*command{
			p.serveCommand(), p.runCommand(), p.statusCommand(), p.eventsCommand(), p.explainCommand(),
			p.reloadCommand(), p.simulateCommand(), p.initCommand(), p.doctorCommand(), p.versionCommand(),
		},
		p.accountsCommands(), p.sessionsCommands(), p.pluginsCommands(), p.configCommands(), p.stateCommands(),
		p.tokenCommands(),
	) {
		all[c.name] = c
	}
	return all
}

// Main runs the command that the arguments name and returns the exit code.
func (p *Program) Main(arguments []string) int {
	arguments = spelledOut(arguments)
	factories := map[string]cli.CommandFactory{}
	for name := range p.commands() {
		factories[name] = func() (cli.Command, error) { return p.commands()[name], nil }
	}
	if code, done := p.refuse(arguments, factories); done {
		return code
	}
	shell := &cli.CLI{
		Name: "noria", Version: p.Version, Args: arguments, Commands: factories,
		Autocomplete: true, HelpFunc: help, HelpWriter: p.Stdout, ErrorWriter: p.Stderr,
	}
	code, err := shell.Run()
	if err != nil {
		_, _ = fmt.Fprintf(p.Stderr, "Error: %s\n", printable.Text(err.Error()))
		return exitFailed
	}
	return code
}

// spelledOut writes "help COMMAND" as "COMMAND -help", and the flags for the version as its command.
func spelledOut(arguments []string) []string {
	if len(arguments) == 0 {
		return arguments
	}
	switch arguments[0] {
	case "help":
		return append(slices.Clone(arguments[1:]), "-help")
	case "-v", "-version", "--version":
		return append([]string{"version"}, arguments[1:]...)
	}
	return arguments
}

// refuse answers what is no command at all, so that a typing error ends with 2 and a suggestion.
func (p *Program) refuse(arguments []string, known map[string]cli.CommandFactory) (code int, done bool) {
	if os.Getenv("COMP_LINE") != "" {
		return 0, false // a shell asks for completions
	}
	if len(arguments) == 0 {
		_, _ = fmt.Fprintln(p.Stderr, help(known))
		return exitUsage, true
	}
	first := arguments[0]
	if strings.HasPrefix(first, "-") {
		switch strings.TrimLeft(first, "-") {
		case "h", "help", "autocomplete-install", "autocomplete-uninstall":
			return 0, false
		}
		_, _ = fmt.Fprintf(p.Stderr, "Error: flag %q before the command\n  write it after the command, as in \"noria status -json\"\n", printable.Text(first))
		return exitUsage, true
	}
	groups := []string{"help"}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		group, _, _ := strings.Cut(name, " ")
		groups = append(groups, group)
	}
	if slices.Contains(groups, first) {
		return 0, false
	}
	_, _ = fmt.Fprintf(p.Stderr, "Error: there is no command %q\n", printable.Bounded(first, 60))
	if best := nearest.Word(first, groups); best != "" {
		_, _ = fmt.Fprintf(p.Stderr, "  did you mean %q?\n", best)
	}
	_, _ = fmt.Fprintln(p.Stderr, `  "noria -help" lists the commands`)
	return exitUsage, true
}

// help lists commands and groups of commands with a line about each.
func help(commands map[string]cli.CommandFactory) string {
	var b strings.Builder
	b.WriteString("Usage: noria COMMAND [flags] [arguments]\n\n")
	b.WriteString("  Noria keeps each session of Claude Code and Codex on one of your accounts, and moves it only\n  when that account cannot serve.\n\nCommands:\n\n")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		c, err := commands[name]()
		if err != nil || strings.Contains(name, " ") {
			continue // its group's help lists it
		}
		fmt.Fprintf(&b, "  %-18s %s\n", name, c.Synopsis())
	}
	b.WriteString("\n\"noria help COMMAND\" tells more. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nobody can serve\n(explain -new), 4 refused, 69 daemon not running, 78 configuration, port or\nstate directory.")
	return b.String() // the library ends the line
}
