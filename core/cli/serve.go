package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/noria-dev/noria/core/agent"
)

func (p *Program) serveCommand() *command {
	c := p.newCommand("serve", "", "Run the daemon in the foreground")
	c.about = `
Runs the daemon until it is told to stop by SIGTERM or Ctrl-C. It then accepts nothing new and lets
streams go on up to limits.drain; a second signal ends it at once. SIGHUP reloads the configuration.

With -dev it needs no account and no configuration: a simulated provider, three accounts with moving
windows, and sessions that arrive by themselves.`
	c.examples = []string{"noria serve", "noria serve -dev"}
	dev := c.flags.Bool("dev", false, "demonstrate with simulated accounts; reads no configuration")
	c.run = func(ctx context.Context, args, _ []string) error {
		if err := c.exactly(0, args); err != nil {
			return err
		}
		if *dev && c.configPath != "" {
			return usagef("-dev reads no configuration; leave -config out")
		}
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		cut, release := onSecondSignal()
		defer release()
		return agent.Run(ctx, agent.Options{
			ConfigPath: c.configPath, Dev: *dev, Version: p.Version, Stdout: p.Stdout, Stderr: p.Stderr, Reload: reload, Cut: cut,
		})
	}
	return c
}

// onSecondSignal gives a context that ends with the second signal to stop; a third one ends the process. release must be
// called.
func onSecondSignal() (cut context.Context, release func()) {
	cut, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 2 {
			if _, more := <-signals; !more {
				return
			}
		}
		signal.Stop(signals)
		cancel()
	}()
	return cut, func() {
		signal.Stop(signals) // nothing is sent after it
		close(signals)
		<-ended
		cancel()
	}
}
