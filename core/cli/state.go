package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/renameio/v2"
	"github.com/posener/complete"
)

func (p *Program) stateCommands() []*command {
	return []*command{
		p.groupCommand("state", "Move bindings between machines", "state export", "state import"),
		p.stateExport(), p.stateImport(),
	}
}

func (p *Program) stateExport() *command {
	c := p.newCommand("state export", "[FILE]", "Write all bindings as JSON")
	c.about = `
Writes which session lives on which account, as JSON, for another machine. It holds the identities of
sessions and the names of accounts, and no credential. Without FILE it goes to standard output.`
	c.examples = []string{"noria state export bindings.json", "noria state export | ssh other noria state import"}
	c.predict = complete.PredictFiles("*.json")
	c.run = func(ctx context.Context, args, _ []string) error {
		if len(args) > 1 {
			return usagef("unexpected argument %q", args[1])
		}
		if len(args) == 0 {
			return c.client().ExportState(ctx, p.Stdout)
		}
		file, err := renameio.NewPendingFile(args[0], renameio.WithPermissions(0o600))
		if err != nil {
			return fmt.Errorf("write bindings: %w", err)
		}
		if err := c.client().ExportState(ctx, file); err != nil {
			return errors.Join(err, file.Cleanup())
		}
		if err := file.CloseAtomicallyReplace(); err != nil {
			return fmt.Errorf("write bindings: %w", err)
		}
		return nil
	}
	return c
}

func (p *Program) stateImport() *command {
	c := p.newCommand("state import", "[FILE]", "Import exported bindings").withJSON()
	c.about = `
Imports bindings that "noria state export" wrote: all of them, or none when one is not valid. A binding of
this machine that was used more recently stays. Without FILE it reads standard input.`
	c.examples = []string{"noria state import bindings.json"}
	c.predict = complete.PredictFiles("*.json")
	c.run = func(ctx context.Context, args, _ []string) error {
		source := p.Stdin
		switch {
		case len(args) > 1:
			return usagef("unexpected argument %q", args[1])
		case len(args) == 1:
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("read bindings: %w", err)
			}
			defer file.Close()
			source = io.Reader(file)
		}
		result, err := c.client().ImportState(ctx, source)
		switch {
		case err != nil:
			return err
		case c.json:
			return c.printJSON(result)
		}
		return c.printf("%s added, %d kept because this machine has a newer one.\n", count(result.Added, "binding", "bindings"), result.Kept)
	}
	return c
}
