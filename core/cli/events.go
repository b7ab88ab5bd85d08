package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/noria-dev/noria/core/api"
)

func (p *Program) eventsCommand() *command {
	c := p.newCommand("events", "", "Show what happened, newest last").withJSON()
	c.about = `
Shows the daemon's list of events, which is in memory and ends with it. With -follow it goes on with those
to come until Ctrl-C; with -json as well, one JSON object per line. Events of requests:

  request      a client's request, as it ended
  attempt      one try at an account
  failover     another account took over a request that this one refused
  detour       another account serves this one request; the session stays where it is
  bound        a session lives on an account from now on
  moved        a session left an account for another one
  refused      a request that was not placed at all
  unavailable  no account could serve
  cut          an answer broke off after it had begun
  passive      a request or an answer that was passed on without a way to try again

The others are of the daemon, its accounts and its adapters.`
	c.examples = []string{"noria events", "noria events -follow"}
	follow := c.flags.Bool("follow", false, "go on with events to come")
	limit := c.limitFlag("past events")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		if *limit < 0 || *limit == 0 && !*follow {
			return usagef("-limit must be at least 1, or 0 with -follow")
		}
		client := c.client()
		past, err := client.Events(ctx, 0, max(*limit, 1))
		switch {
		case err != nil:
			return err
		case *follow:
			return c.followEvents(ctx, client, past, *limit)
		case c.json:
			return c.printJSON(past)
		case len(past) == 0:
			return c.printf("Nothing has happened yet.\n")
		}
		return c.printTable(p.eventTable(past))
	}
	return c
}

// followEvents prints so many of the past events, and all that come after them.
func (c *command) followEvents(ctx context.Context, client *api.Client, past []api.Event, limit int) error {
	after := uint64(0)
	for i, e := range past {
		after = e.Sequence
		if i < len(past)-limit {
			continue
		}
		if err := c.printEvent(api.FollowedEvent{Event: e}); err != nil {
			return err
		}
	}
	err := client.FollowEvents(ctx, after, c.printEvent)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (c *command) printEvent(e api.FollowedEvent) error {
	if c.json {
		return c.printJSONLine(e)
	}
	if e.Missed > 0 {
		if err := c.printf("(%d events were missed here: they came faster than they were read)\n", e.Missed); err != nil {
			return err
		}
	}
	cells := c.program.eventCells(e.Event)
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
		left := e.Provider + "/" + e.From
		if e.Account == "" {
			account = left
		} else {
			account = left + " to " + account
		}
	}
	took := ""
	if e.Duration > 0 {
		took = e.Duration.Round(time.Millisecond).String()
	}
	return []string{
		p.clock(e.At, "15:04:05.000"), inWords(string(e.Operation)),
		account, e.Model, e.SessionHash, e.RequestID, resultText(e), took,
	}
}

// resultText is what came of it, and why.
func resultText(e api.Event) string {
	var result []string
	if e.Status != 0 {
		result = append(result, strconv.Itoa(e.Status))
	}
	for _, word := range []string{string(e.State), string(e.Outcome)} {
		if word != "" {
			result = append(result, inWords(word))
		}
	}
	came, why := strings.Join(result, " "), string(e.Reason)
	switch {
	case why == "" || why == string(e.Outcome):
		return came
	case came == "":
		return inWords(why)
	}
	return came + ": " + inWords(why)
}
