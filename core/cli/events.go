package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) eventsCommand() *command {
	c := p.newCommand("events", "", "Show what happened, newest last").withJSON()
	c.about = `
Shows the daemon's list of events: placements, moves, refusals, adapters. With -follow it goes on with
those to come until Ctrl-C; with -json as well, one JSON object per line.`
	c.examples = []string{"noria events", "noria events -follow"}
	follow := c.flags.Bool("follow", false, "go on with events to come")
	limit := c.flags.Int("limit", 100, "at most `N` past events")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		if *limit < 0 {
			return usagef("-limit must not be negative")
		}
		client := c.client()
		var past []api.Event
		var err error
		if *limit > 0 {
			past, err = client.Events(ctx, 0, *limit)
		}
		switch {
		case err != nil:
			return err
		case *follow:
			return c.followEvents(ctx, client, past)
		case c.json:
			return c.printJSON(past)
		case len(past) == 0:
			return c.printf("Nothing has happened yet.\n")
		}
		return c.printTable(p.eventTable(past))
	}
	return c
}

func (c *command) followEvents(ctx context.Context, client *api.Client, past []api.Event) error {
	after := uint64(0)
	for _, e := range past {
		after = e.Sequence
		if err := c.printEvent(e); err != nil {
			return err
		}
	}
	err := client.FollowEvents(ctx, after, c.printEvent)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *command) printEvent(e api.Event) error {
	if c.json {
		return c.printJSONLine(e)
	}
	cells := c.program.eventCells(e)
	parts := make([]string, 0, len(cells))
	for _, cell := range cells {
		if cell != "" {
			parts = append(parts, text(cell))
		}
	}
	return c.printf("%s\n", strings.Join(parts, "  "))
}

func (p *Program) eventTable(events []api.Event) *table {
	t := &table{header: []string{"TIME", "OPERATION", "ACCOUNT", "MODEL", "SESSION", "REQUEST", "RESULT", "TOOK"}}
	for _, e := range events {
		t.add(p.eventCells(e)...)
	}
	return t
}

func (p *Program) eventCells(e api.Event) []string {
	account := e.Provider
	if e.Account != "" {
		account += "/" + e.Account
	}
	if e.From != "" {
		account = e.From + " to " + account
	}
	var result []string
	if e.Status != 0 {
		result = append(result, fmt.Sprint(e.Status))
	}
	for _, word := range []string{string(e.State), string(e.Outcome), string(e.Reason)} {
		if word != "" {
			result = append(result, strings.ReplaceAll(word, "_", " "))
		}
	}
	took := ""
	if e.Duration > 0 {
		took = e.Duration.Round(time.Millisecond).String()
	}
	return []string{
		e.At.In(p.Location).Format("15:04:05.000"), strings.ReplaceAll(string(e.Operation), "_", " "),
		account, e.Model, e.SessionHash, e.RequestID, strings.Join(result, " "), took,
	}
}
