package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/posener/complete"

	"github.com/noria-dev/noria/core/state/simulation"
)

func (p *Program) simulateCommand() *command {
	c := p.newCommand("simulate", "TRACE", "Run the placement on a trace")
	c.about = `
Replays a trace (JSON lines, - for standard input) through the daemon's own placement and prints every
decision as a JSON line. Decisions that the trace recorded are compared, and the exit code is 1 when one
differs. Lines that begin with # are comments, and every event has its time t in milliseconds:

  {"ev":"account","t":0,"account":"A","enabled":true,"models":["m"],"windows":[{"id":"5h","dur_ms":18000000}]}
  {"ev":"telemetry","t":0,"taken":0,"src":"poll","account":"A","windows":[{"id":"5h","used":20,"reset":9000000}]}
  {"ev":"arrival","t":1000,"req":1,"session":"s","model":"m"}
  {"ev":"accepted","t":2000,"req":1}
  {"ev":"completed","t":3000,"req":1}

Others are aborted, rejected (with class quota, auth or throttle, and perhaps window and reset), restart and
end. "go doc github.com/noria-dev/noria/core/state/simulation" has all of the format.

With -serve it reads events from standard input and answers each arrival and rejection at once, so that
another program can drive it.`
	c.examples = []string{"noria simulate trace.jsonl", "noria simulate -explain trace.jsonl", "noria simulate -serve"}
	c.predict = complete.PredictFiles("*.jsonl")
	var options simulation.Options
	c.flags.BoolVar(&options.Serve, "serve", false, "answer events of standard input one by one")
	c.flags.BoolVar(&options.Explain, "explain", false, "print the reasoning behind every decision, as comments")
	c.run = func(_ context.Context, args, _ []string) error {
		trace, err := c.trace(args, options.Serve)
		if err != nil {
			return err
		}
		defer trace.Close()
		result, err := simulation.Run(trace, p.Stdout, options)
		switch {
		case err != nil:
			return fmt.Errorf("simulate: %w", err)
		case result.Differing > 0:
			c.errorf("%d of %s differ from the trace.\n", result.Differing, count(result.Decisions, "decision", "decisions"))
			return &exitError{code: exitFailed}
		}
		return nil
	}
	return c
}

func (c *command) trace(args []string, serve bool) (io.ReadCloser, error) {
	if serve {
		if len(args) > 0 {
			return nil, usagef("-serve reads standard input; leave %q out", args[0])
		}
		return io.NopCloser(c.program.Stdin), nil
	}
	if err := c.exactly(1, args); err != nil {
		return nil, err
	}
	if args[0] == "-" {
		return io.NopCloser(c.program.Stdin), nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	return file, nil
}
